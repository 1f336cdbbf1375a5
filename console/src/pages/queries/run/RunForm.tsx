import type { ComponentChildren } from "preact";
import type { Signal } from "@/api/connections.ts";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loading } from "@/components/Loading.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { Panel } from "@/shell/Page.tsx";
import { CopyAs } from "../snippets/CopyAs.tsx";
import { isSameCall, type QueryCall } from "./queryCall.ts";
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
  /** Signals of the connections that the query reads, for the chart. */
  signals?: readonly Signal[];
  /** Renders content above the inputs, with the buttons that run the query beside it. */
  before?: (buttons: ComponentChildren) => ComponentChildren;
  /** Notice for an error that `before` shows. */
  toldBefore?: string | undefined;
  children: ComponentChildren;
  disabled?: boolean;
}

/** A form with the inputs of a query, and its result. */
export function RunForm(props: Props) {
  const { run, ask, onRun, actions, columns, signals = [], before, toldBefore, children, disabled = false } = props;
  const submit = (event: Event) => {
    event.preventDefault();
    if (!disabled && !run.busy) {
      onRun();
    }
  };
  const buttons = (
    <>
      <Button kind="primary" type="submit" busy={run.busy} disabled={disabled}>
        Run
      </Button>
      {run.busy && <Button onClick={run.stop}>Stop waiting</Button>}
    </>
  );
  return (
    <div class={css.stack}>
      <Panel>
        <form class={css.form} onSubmit={submit}>
          {before?.(buttons)}
          <div class={css.inputs}>{children}</div>
          <div class={css.actions}>
            {!before && buttons}
            <CopyAs ask={ask} columns={run.answer?.columns ?? columns ?? []} />
            {actions}
          </div>
        </form>
      </Panel>
      <Outcome run={run} ask={ask} signals={signals} instead={toldBefore} />
    </div>
  );
}

interface OutcomeProps {
  run: Run;
  ask: QueryCall;
  signals: readonly Signal[];
  instead: string | undefined;
}

function Outcome({ run, ask, signals, instead }: OutcomeProps) {
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
        {!isSameCall(run.asked, ask) && (
          <Notice kind="warn" title="The inputs have changed since this run">
            The rows and their files belong to the earlier inputs. Run the query again.
          </Notice>
        )}
        <Results answer={run.answer} asked={run.asked} signals={signals} />
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
