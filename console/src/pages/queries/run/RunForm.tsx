import type { ComponentChildren } from "preact";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loading } from "@/components/Loading.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { Panel } from "@/shell/Page.tsx";
import { CopyAs } from "../snippets/CopyAs.tsx";
import type { QueryCall } from "./queryCall.ts";
import { Results } from "./Results.tsx";
import css from "./RunForm.module.css";
import type { Run } from "./useRun.ts";

interface Props {
  run: Run;
  /** The call as the inputs stand. */
  ask: QueryCall;
  onRun: () => void;
  /** What else to do with what was entered. */
  actions?: ComponentChildren;
  /** Names of columns where they are known before a run. */
  columns?: readonly { name: string; type: string }[];
  /** Above the row of inputs. */
  before?: ComponentChildren;
  /** What stands for an error that `before` tells. */
  toldBefore?: string | undefined;
  children: ComponentChildren;
  disabled?: boolean;
}

/** Inputs of a query, the button that runs it, and what came of it. */
export function RunForm({ run, ask, onRun, actions, columns, before, toldBefore, children, disabled = false }: Props) {
  const submit = (event: Event) => {
    event.preventDefault();
    if (!disabled && !run.busy) {
      onRun();
    }
  };
  return (
    <div class={css.stack}>
      <Panel>
        <form class={css.form} onSubmit={submit} noValidate>
          {before}
          <div class={css.inputs}>{children}</div>
          <div class={css.actions}>
            <Button kind="primary" type="submit" busy={run.busy} disabled={disabled}>
              Run
            </Button>
            {run.busy && <Button onClick={run.stop}>Stop waiting</Button>}
            <CopyAs ask={ask} columns={run.answer?.columns ?? columns ?? []} />
            {actions}
          </div>
        </form>
      </Panel>
      <Outcome run={run} instead={toldBefore} />
    </div>
  );
}

function Outcome({ run, instead }: { run: Run; instead: string | undefined }) {
  if (run.error !== undefined) {
    const again = run.error instanceof ApiError && (run.error.status === 0 || run.error.status >= 429);
    return (
      <ErrorNotice
        error={run.error}
        instead={instead}
        {...(again && run.asked ? { onRetry: () => run.asked && run.start(run.asked) } : {})}
      />
    );
  }
  if (run.answer && run.asked) {
    return (
      <Panel>
        <Results answer={run.answer} asked={run.asked} />
      </Panel>
    );
  }
  return (
    <Panel>
      {run.busy ? (
        <Loading label="The query runs" rows={6} />
      ) : (
        <Empty title="Not run yet">Its rows appear here, as a chart where they have a time, and as a table.</Empty>
      )}
    </Panel>
  );
}
