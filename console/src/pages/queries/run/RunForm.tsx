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
  /** The call with the current inputs. */
  ask: QueryCall;
  onRun: () => void;
  /** Further actions with the inputs. */
  actions?: ComponentChildren;
  /** Columns, if they are known before a run. */
  columns?: readonly { name: string; type: string }[];
  /** Content above the inputs. */
  before?: ComponentChildren;
  /** Notice for an error that `before` shows. */
  toldBefore?: string | undefined;
  children: ComponentChildren;
  disabled?: boolean;
}

/** A form with the inputs of a query, and its result. */
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
        <Loading label="The query is running" rows={6} />
      ) : (
        <Empty title="Not run yet">The result appears here as a table, and as a chart if it has a time column.</Empty>
      )}
    </Panel>
  );
}
