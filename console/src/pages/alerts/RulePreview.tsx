import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Chart } from "@/components/Chart.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { PastRangeFields } from "@/components/PastRangeFields.tsx";
import { checkRange, createRange, resolveRange } from "@/components/pastRanges.ts";
import { useWork } from "@/components/useWork.ts";
import { formatCount } from "@/format.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Alerts.module.css";
import { fetchPreview, type Preview, STEPS } from "./preview.ts";
import { RULE_FORM, type RuleDraft } from "./ruleDraft.ts";

const RANGES = [
  { value: "3600", label: "the last hour" },
  { value: "86400", label: "the last 24 hours" },
  { value: "604800", label: "the last 7 days" },
];

/** The condition of a threshold rule over past data, and how often the rule would have fired. */
export function RulePreview({ draft }: { draft: RuleDraft }) {
  const executes = useHasRights("Workspace.WarmQuery.Execute");
  const [range, setRange] = useState(() => createRange("86400"));
  const [shown, setShown] = useState<{ input: string; preview: Preview }>();
  const { busy, error, run } = useWork();
  if (draft.kind === "absence" || !executes) {
    return null;
  }
  const input = JSON.stringify([range, listPreviewed(draft)]);
  const preview = shown?.input === input ? shown.preview : undefined;
  const show = async () => {
    const faults = Object.entries(RULE_FORM.check(draft, false)).filter(([name]) => name !== "name");
    const fault = faults.find(([, message]) => message !== undefined);
    if (fault) {
      throw new Error(`Complete the rule first: ${fault[0]}: ${fault[1]}`);
    }
    const wrong = checkRange(range);
    if (wrong !== undefined) {
      throw new Error(wrong);
    }
    const { from, to } = resolveRange(range);
    setShown({ input, preview: await fetchPreview(api, draft, to - from, new AbortController().signal, to) });
  };
  const limit = draft.conditionKind === "column" ? Number(draft.value) : undefined;
  return (
    <Panel
      title="Preview"
      actions={
        <Button icon="refresh" busy={busy} onClick={() => void run(show)}>
          Preview on past data
        </Button>
      }
    >
      <div class={css.range}>
        <PastRangeFields label="Past data of" range={range} presets={RANGES} onChange={setRange} />
      </div>
      {error !== undefined && <ErrorNotice error={error} />}
      {preview ? (
        <div class={css.result}>
          <Notice kind={preview.fired === 0 ? "good" : "warn"} title={`Would have fired ${formatTimes(preview.fired)}`}>
            The condition was evaluated at {STEPS} times; {formatCount(preview.groups)}{" "}
            {preview.groups === 1 ? "group was" : "groups were"} found.
          </Notice>
          {preview.lines.length > 0 && (
            <Chart
              label="Values of the condition over past data"
              times={preview.times}
              series={[
                ...preview.lines,
                ...(limit === undefined ? [] : [{ label: "limit", values: preview.times.map(() => limit) }]),
              ]}
            />
          )}
        </div>
      ) : (
        <p>
          {shown && "The rule or the time range has changed since the last preview. "}Shows the values of the query at{" "}
          {STEPS} past times, and how often the rule would have fired.
        </p>
      )}
    </Panel>
  );
}

/** Returns the fields that decide the result of a preview. */
function listPreviewed(draft: RuleDraft): readonly string[] {
  const { query, parameters, timeRange, conditionKind, column, operator, value, groupBy, hold } = draft;
  return [query, parameters, timeRange, conditionKind, column, operator, value, groupBy, hold];
}

/** `once`, or `3 times`. */
export function formatTimes(count: number): string {
  return count === 1 ? "once" : `${formatCount(count)} times`;
}
