import { useState } from "preact/hooks";
import type { QueryResult } from "@/api/queries.ts";
import { Status } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { Time } from "@/components/Time.tsx";
import { showToast } from "@/components/toasts.ts";
import { formatCount } from "@/format.ts";
import { type Form, type QueryCall, saveRows } from "./queryCall.ts";
import css from "./Results.module.css";

/** A summary of a result: approver, number of rows, age, and downloads. */
export function Summary({ answer, asked }: { answer: QueryResult; asked: QueryCall }) {
  return (
    <section class={css.summary} aria-label="About the result">
      <span class={css.fact}>
        <strong>{formatCount(answer.rowCount)}</strong> {answer.rowCount === 1 ? "row" : "rows"}
      </span>
      <span class={css.fact}>
        in <strong>{formatDuration(answer.executionTimeMs)}</strong>
      </span>
      <Age answer={answer} />
      <Governance answer={answer} />
      <Files asked={asked} />
    </section>
  );
}

function Age({ answer }: { answer: QueryResult }) {
  const at = answer.asOf ?? answer.executedAt;
  return (
    <span class={css.fact}>
      {answer.fromCache ? "cached, as of " : "as of "}
      <Time at={at} />
    </span>
  );
}

function Governance({ answer }: { answer: QueryResult }) {
  const { queryApprovedBy: by, queryApprovedAt: at } = answer.governance;
  if (by === null) {
    return <Status tone="neutral">Ad-hoc: this query has no approval</Status>;
  }
  return (
    <Status tone="good">
      <span class={css.approval}>
        Approved by {by}, <Time at={at} />
      </span>
    </Status>
  );
}

function Files({ asked }: { asked: QueryCall }) {
  const [busy, setBusy] = useState<Form>();
  const fetched = async (form: Form) => {
    setBusy(form);
    try {
      await saveRows(asked, form);
    } catch (error) {
      showToast(`The file could not be downloaded: ${error instanceof Error ? error.message : String(error)}`, "bad");
    } finally {
      setBusy(undefined);
    }
  };
  return (
    <div class={css.files}>
      <Button icon="download" busy={busy === "csv"} onClick={() => void fetched("csv")}>
        CSV
      </Button>
      <Button icon="download" busy={busy === "parquet"} onClick={() => void fetched("parquet")}>
        Parquet
      </Button>
    </div>
  );
}

function formatDuration(value: number): string {
  return value < 1000 ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : `${(value / 1000).toFixed(1)} s`;
}
