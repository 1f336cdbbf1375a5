import { Empty } from "@/components/Empty.tsx";
import { Panel } from "@/shell/Page.tsx";
import { type Trial, TrialForm } from "../detail/DraftTrial.tsx";

/** Runs the typed text of the form, before it is saved; the reader needs Workspace.WarmQuery.AdHoc. */
export function FormTrial({ trial }: { trial: Trial }) {
  return (
    <section aria-label="Try the text">
      {trial.query.surface === "" ? (
        <Panel title="Try the text">
          <Empty title="Choose a surface first">Then you can run the text here before you save it.</Empty>
        </Panel>
      ) : (
        <TrialForm trial={trial}>
          It runs as your ad-hoc query, with your rights. Nothing is saved, and only you see the result.
        </TrialForm>
      )}
    </section>
  );
}
