import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Notice } from "@/components/Notice.tsx";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Keys.module.css";

interface Props {
  title: string;
  /** The token or API key; only this view has it. */
  secret: string;
  /** Properties of the credential, in rows. */
  facts: readonly { label: string; value: ComponentChildren }[];
  /** What the reader should know about the credential; the default suits tokens and API keys. */
  advice?: string;
  onDone: () => void;
  /** Help with the use of the credential, below its properties. */
  children?: ComponentChildren;
}

const ADVICE =
  "Neither this page nor the service stores it. It gives access to anyone who has it: treat it as a password, and revoke it if others may have seen it.";

/** A new credential, shown once; it takes the focus and remains until the reader closes it. */
export function Secret({ title, secret, facts, advice = ADVICE, onDone, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => box.current?.focus(), []);
  const [copied, setCopied] = useState(false);
  useUnsavedWarning(!copied);
  // After the end of the warning, because `onDone` may go to another page.
  useLayoutEffect(() => {
    if (copied) {
      onDone();
    }
  }, [copied]);
  return (
    <Panel title={title}>
      <div ref={box} class={css.secret} tabIndex={-1}>
        <Notice kind="warn" title="Copy it now. It is not shown again.">
          {advice}
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
        {children}
        <div>
          <Button kind="primary" onClick={() => setCopied(true)}>
            I have copied it
          </Button>
        </div>
      </div>
    </Panel>
  );
}
