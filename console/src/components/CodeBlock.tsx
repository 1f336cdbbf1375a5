import { Button } from "./Button.tsx";
import css from "./CodeBlock.module.css";
import { showToast } from "./toasts.ts";
import { VisibleText } from "./VisibleText.tsx";

interface Props {
  /** What is shown and copied. */
  code: string;
  /** What it is, for screen readers: "KQL of the query". */
  label: string;
}

/** Text of a program, with a button that copies it. */
export function CodeBlock({ code, label }: Props) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
      showToast("Copied");
    } catch {
      showToast("The browser does not let this page copy; select the text instead", "bad");
    }
  };
  return (
    <div class={css.block}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
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
