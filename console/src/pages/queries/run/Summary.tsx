import { useState } from "preact/hooks";
import type { QueryAnswer } from "@/api/queries.ts";
import { Status } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { Time } from "@/components/Time.tsx";
import { toast } from "@/components/toasts.ts";
import { count } from "@/format.ts";
import { type Ask, type Form, save } from "./ask.ts";
import css from "./Results.module.css";

/** What is known of an answer: who released the query, how many rows, how old; and its rows as files. */
export function Summary({ answer, asked }: { answer: QueryAnswer; asked: Ask }) {
  return (
    <section class={css.summary} aria-label="About the result">
      <span class={css.fact}>
        <strong>{count(answer.rowCount)}</strong> {answer.rowCount === 1 ? "row" : "rows"}
      </span>
      <span class={css.fact}>
        in <strong>{milliseconds(answer.executionTimeMs)}</strong>
      </span>
      <Age answer={answer} />
      <Governance answer={answer} />
      <Files asked={asked} />
    </section>
  );
}

function Age({ answer }: { answer: QueryAnswer }) {
  const at = answer.asOf ?? answer.executedAt;
  return (
    <span class={css.fact}>
      {answer.fromCache ? "kept from an earlier run, as of " : "as of "}
      <Time at={at} />
    </span>
  );
}

function Governance({ answer }: { answer: QueryAnswer }) {
  const { queryApprovedBy: by, queryApprovedAt: at } = answer.governance;
  if (by === null) {
    return <Status tone="neutral">Ad-hoc: nobody approved this query</Status>;
  }
  return (
    <Status tone="good">
      <span>
        Approved by {by}, <Time at={at} />
      </span>
    </Status>
  );
}

function Files({ asked }: { asked: Ask }) {
  const [busy, setBusy] = useState<Form>();
  const fetched = async (form: Form) => {
    setBusy(form);
    try {
      await save(asked, form);
    } catch (error) {
      toast(`No file came: ${error instanceof Error ? error.message : String(error)}`, "bad");
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

function milliseconds(value: number): string {
  return value < 1000 ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : `${(value / 1000).toFixed(1)} s`;
}
