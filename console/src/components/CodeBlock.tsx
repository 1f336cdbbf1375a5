import { Button } from "./Button.tsx";
import css from "./CodeBlock.module.css";
import { showToast } from "./toasts.ts";
import { VisibleText } from "./VisibleText.tsx";

interface Props {
  /** Text to show and copy. */
  code: string;
  /** Description for screen readers: "KQL of the query". */
  label: string;
}

/** Text of a program, with a button that copies it. */
export function CodeBlock({ code, label }: Props) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
      showToast("Copied");
    } catch {
      showToast("The browser blocked copying; select the text instead", "bad");
    }
  };
  return (
    <div class={css.block}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must reach a scrolling area */}
      <section tabIndex={0} aria-label={label}>
        <pre>
          <code>
            <VisibleText text={code} />
          </code>
        </pre>
      </section>
      <div class={css.copy}>
        <Button kind="quiet" icon="copy" label="Copy" onClick={() => void copy()} />
      </div>
    </div>
  );
}
