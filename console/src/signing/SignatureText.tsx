import type { Signature } from "@/api/signatures.ts";
import { LongText, VisibleText } from "@/components/VisibleText.tsx";
import css from "./Signing.module.css";
import { formatSignedTime } from "./signedTime.ts";

/** A signature: printed name, time with zone, meaning and statement. */
export function SignatureText({ signature }: { signature: Signature }) {
  return (
    <div class={css.shown}>
      <p>
        Signed by{" "}
        <b>
          <VisibleText text={String(signature.printedName)} />
        </b>{" "}
        ({signature.userId}), <time dateTime={signature.signedAt}>{formatSignedTime(String(signature.signedAt))}</time>,
        meaning: <b>{signature.meaning}</b>
      </p>
      {signature.statement !== null && signature.statement !== undefined && (
        <p class={css.soft}>
          Statement: <LongText text={signature.statement} />
        </p>
      )}
    </div>
  );
}
