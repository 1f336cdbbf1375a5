import { useState } from "preact/hooks";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatPlain } from "@/format.ts";
import css from "./JsonCell.module.css";
import { formatJson } from "./jsonCells.ts";

/** A cell with JSON: one line of it, which opens the whole value. */
export function JsonCell({ column, value }: { column: string; value: unknown }) {
  const [open, setOpen] = useState(false);
  const whole = formatJson(value);
  const line = formatPlain(value);
  if (whole === undefined) {
    return line === "" ? <span class={css.missing}>–</span> : <VisibleText text={line} />;
  }
  return (
    <>
      <button type="button" class={css.open} title="Open the whole value" onClick={() => setOpen(true)}>
        <VisibleText text={line} />
      </button>
      {open && (
        <Dialog title={column} wide onClose={() => setOpen(false)}>
          <CodeBlock code={whole} label={`Value of ${column}`} />
        </Dialog>
      )}
    </>
  );
}
