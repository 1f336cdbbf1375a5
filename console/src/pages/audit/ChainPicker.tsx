import { useLayoutEffect, useState } from "preact/hooks";
import { ScopeField } from "@/components/ScopeField.tsx";
import { type ChainName, isScoped, TARGET_TEXTS, TARGETS } from "@/proof/chains.ts";
import { buildHref, navigate } from "@/router/route.ts";
import css from "./Audit.module.css";

/** Inputs for the container and, if it has scopes, the scope. */
export function ChainPicker({ chain }: { chain: ChainName }) {
  const [scope, setScope] = useState(chain.scopeKey);
  useLayoutEffect(() => {
    // A container without scopes leaves the text for the return to one with scopes.
    if (chain.scopeKey !== "") {
      setScope(chain.scopeKey);
    }
  }, [chain.scopeKey]);
  const open = (scopeKey: string) =>
    navigate(buildHref("audit", scopeKey === "" ? [chain.target] : [chain.target, scopeKey]));
  return (
    <div class={css.picker}>
      <fieldset class={css.targets}>
        <legend class="visually-hidden">Container</legend>
        {TARGETS.map((target) => (
          <label key={target} class={css.target} title={TARGET_TEXTS[target].holds}>
            <input
              type="radio"
              name="target"
              checked={target === chain.target}
              onChange={() =>
                navigate(buildHref("audit", isScoped(target) && chain.scopeKey ? [target, chain.scopeKey] : [target]))
              }
            />
            <span>{TARGET_TEXTS[target].label}</span>
          </label>
        ))}
      </fieldset>
      {isScoped(chain.target) && <ScopeField target={chain.target} value={scope} onInput={setScope} onOpen={open} />}
    </div>
  );
}
