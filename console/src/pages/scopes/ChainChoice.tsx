import { useState } from "preact/hooks";
import type { AuditScope } from "@/api/auditScopes.ts";
import { MAX_CHAINS } from "@/api/bundles.ts";
import { Button } from "@/components/Button.tsx";
import { Checkbox, Field } from "@/components/Field.tsx";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatCount } from "@/format.ts";
import { type ChainName, formatChain } from "@/proof/chains.ts";
import { filterChains, toKey } from "./bundleChoice.ts";
import css from "./Scopes.module.css";

const MOST_SHOWN = 200;

interface Props {
  scopes: readonly AuditScope[];
  chosen: readonly ChainName[];
  onChange: (chosen: readonly ChainName[]) => void;
}

/** A choice of chains from a list that can be searched. */
export function ChainChoice({ scopes, chosen, onChange }: Props) {
  const [text, setText] = useState("");
  const matching = filterChains(scopes, text);
  const shown = matching.slice(0, MOST_SHOWN);
  const keys = new Set(chosen.map(toKey));
  const toggle = (chain: ChainName, on: boolean) =>
    onChange(on ? [...chosen, chain] : chosen.filter((other) => toKey(other) !== toKey(chain)));
  const addAll = () =>
    onChange([...chosen, ...matching.filter((chain) => !keys.has(toKey(chain)))].slice(0, MAX_CHAINS));
  return (
    <fieldset class={css.choice}>
      <legend>Chains</legend>
      <div class={css.search}>
        <Field label="Search chains" hideLabel type="search" placeholder="Search" value={text} onInput={setText} />
        <Button onClick={addAll}>Select all {formatCount(Math.min(matching.length, MAX_CHAINS))}</Button>
        <Button disabled={chosen.length === 0} onClick={() => onChange([])}>
          Clear
        </Button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must reach a scrolling area */}
      <section class={css.chains} tabIndex={0} aria-label="Available chains">
        {shown.map((chain) => (
          <Checkbox
            key={toKey(chain)}
            label={<VisibleText text={formatChain(chain)} isName />}
            checked={keys.has(toKey(chain))}
            onChange={(on) => toggle(chain, on)}
            disabled={chosen.length >= MAX_CHAINS && !keys.has(toKey(chain))}
          />
        ))}
        {shown.length === 0 && <p class={css.soft}>No chain matches.</p>}
      </section>
      <p class={css.soft} role="status">
        {formatCount(chosen.length)} of {formatCount(scopes.length)} chains selected, at most {formatCount(MAX_CHAINS)}.
        {matching.length > shown.length &&
          ` ${formatCount(matching.length - shown.length)} more match; search for them.`}
      </p>
    </fieldset>
  );
}
