import { Button } from "./Button.tsx";
import { showToast } from "./toasts.ts";

interface Props {
  text: string;
  /** Description of the text: "SHA-256 of pump-rig". */
  of: string;
}

/** Copies a text that is too long to type. */
export function CopyButton({ text, of }: Props) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      showToast("Copied");
    } catch {
      showToast("The browser blocked copying. Select the text instead.", "bad");
    }
  };
  return <Button kind="quiet" icon="copy" label={`Copy ${of}`} onClick={() => void copy()} />;
}
