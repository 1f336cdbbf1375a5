import { useState } from "preact/hooks";
import type { DocumentWarning, KeptItem, Plan, PlannedChange } from "@/api/workspaceDocument.ts";
import { Status } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatCount } from "@/format.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Document.module.css";
import { countWords, describeKind, summarizePlan } from "./planning.ts";

const STEP = 50;
/** A plan with more changes shows only the fields of changed items at first. */
const FEW = 10;
const TONES = { added: "good", changed: "accent", removed: "bad" } as const;

interface Props {
  plan: Plan;
  busy: boolean;
  onApply: () => void;
}

/** The changes that a document makes, item by item, and the items that stay. */
export function PlanView({ plan, busy, onApply }: Props) {
  const { changes, kept, warnings = [] } = plan;
  const [shown, setShown] = useState(STEP);
  const rest = changes.length - shown;
  return (
    <>
      <Panel
        title={`Plan: ${summarizePlan(plan)}`}
        actions={
          changes.length > 0 && (
            <Button kind="primary" busy={busy} onClick={onApply}>
              Apply
            </Button>
          )
        }
      >
        <Warnings warnings={warnings} />
        {changes.length === 0 && <Notice kind="good" title="The workspace matches the document." />}
        {changes.slice(0, shown).map((change) => (
          <Change
            key={`${change.kind}/${change.key}`}
            change={change}
            open={change.action === "changed" || changes.length <= FEW}
          />
        ))}
        {rest > 0 && (
          <Button onClick={() => setShown(shown + STEP)}>
            Show {formatCount(Math.min(rest, STEP))} of {countWords(rest, "more change")}
          </Button>
        )}
      </Panel>
      {kept.length > 0 && <Kept kept={kept} />}
    </>
  );
}

function Change({ change, open }: { change: PlannedChange; open: boolean }) {
  const { action, kind, key, changedBy, changedAt } = change;
  return (
    <article class={css.change} aria-label={`${action}: ${describeKind(kind)} ${key}`}>
      <header>
        <Status tone={TONES[action]}>{action}</Status>
        <h3>
          {describeKind(kind)}{" "}
          <code>
            <VisibleText text={key} />
          </code>
        </h3>
        {changedBy && (
          <span class={css.soft}>
            last changed by {changedBy}, <Time at={changedAt} />
          </span>
        )}
      </header>
      <details open={open}>
        <summary>Before and after</summary>
        <JsonDiff before={change.before} after={change.after} />
      </details>
    </article>
  );
}

function Warnings({ warnings }: { warnings: readonly DocumentWarning[] }) {
  if (warnings.length === 0) {
    return null;
  }
  return (
    <Notice kind="warn" title={countWords(warnings.length, "warning")}>
      <ul class={css.removed}>
        {warnings.map(({ field, message, line, column }) => (
          <li key={`${field} ${message}`}>
            {line && `Line ${line}, column ${column}: `}
            <code>{field}</code> {message}
          </li>
        ))}
      </ul>
    </Notice>
  );
}

function Kept({ kept }: { kept: readonly KeptItem[] }) {
  return (
    <Panel title={`Unchanged: ${countWords(kept.length, "item")}`}>
      <div class={css.scroll}>
        <table class={css.kept} aria-label="Items that stay as they are">
          <thead>
            <tr>
              <th scope="col">Item</th>
              <th scope="col">Reason</th>
            </tr>
          </thead>
          <tbody>
            {kept.map(({ kind, key, reason }) => (
              <tr key={`${kind}/${key}`}>
                <th scope="row">
                  {describeKind(kind)}{" "}
                  <code>
                    <VisibleText text={key} />
                  </code>
                </th>
                <td>{reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
