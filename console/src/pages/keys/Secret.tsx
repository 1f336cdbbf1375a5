import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Panel } from "@/shell/Page.tsx";
import css from "./Keys.module.css";

interface Props {
  title: string;
  /** The token or API key; it is kept by nothing but this view. */
  secret: string;
  /** What is known about it, in rows. */
  facts: readonly { label: string; value: ComponentChildren }[];
  onDone: () => void;
}

/** A credential just made, shown this once; it takes the focus, and stays until its reader is done. */
export function Secret({ title, secret, facts, onDone }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), []);
  return (
    <Panel title={title}>
      <div ref={box} class={css.secret} tabIndex={-1}>
        <Notice kind="warn" title="Copy it now: it is shown this once.">
          Neither this page nor the service keeps it. Whoever has it may do what it carries, so hand it over as you
          would a password, and revoke it when it may have been seen.
        </Notice>
        <CodeBlock code={secret} label={title} />
        <dl class={css.facts}>
          {facts.map((fact) => (
            <div key={fact.label}>
              <dt>{fact.label}</dt>
              <dd>{fact.value}</dd>
            </div>
          ))}
        </dl>
        <div>
          <Button kind="primary" onClick={onDone}>
            I have copied it
          </Button>
        </div>
      </div>
    </Panel>
  );
}
