import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { CodeEditor } from "@/components/CodeEditor.tsx";
import { showToast } from "@/components/toasts.ts";
import { Panel } from "@/shell/Page.tsx";
import { ApplyDialog } from "./ApplyDialog.tsx";
import css from "./Document.module.css";
import { FileDrop } from "./FileDrop.tsx";
import { Outcome } from "./Outcome.tsx";
import { PlanView } from "./PlanView.tsx";
import { isPlanOutdated, readDocumentFile, toTextErrors } from "./planning.ts";
import type { Planning } from "./usePlanning.ts";

interface Props {
  planning: Planning;
  /** The current document; undefined until it is loaded. */
  current: string | undefined;
}

const REPLACE = "Replace the text of the document?";

/** A document to apply: its text, its plan, and its application. */
export function ApplyDocument({ planning, current }: Props) {
  const [asking, setAsking] = useState(false);
  const result = useRef<HTMLDivElement>(null);
  const { text, saved, busy, plan, applied, error } = planning;
  useEffect(() => {
    if (plan || applied || error !== undefined) {
      result.current?.scrollIntoView({ block: "nearest" });
    }
  }, [plan, applied, error]);
  const canReplace = () => text === saved || window.confirm(REPLACE);
  const take = async (file: File) => {
    try {
      const content = await readDocumentFile(file);
      if (canReplace()) {
        planning.edit(content);
        showToast(`“${file.name}” is loaded`);
      }
    } catch (error) {
      showToast(error instanceof Error ? error.message : String(error), "bad");
    }
  };
  return (
    <div class={css.stack}>
      <Panel
        title="New document"
        actions={<Sources current={current} onFile={take} onLoad={(found) => canReplace() && planning.load(found)} />}
      >
        <FileDrop onFile={(file) => void take(file)}>
          <CodeEditor
            label="YAML or JSON"
            value={text}
            onInput={planning.edit}
            onRun={() => void planning.makePlan()}
            hint="Type, paste, or drop a file here. Ctrl+Enter makes the plan; nothing changes until you apply it."
            errors={toTextErrors(planning.error)}
            rows={14}
            disabled={busy === "applying"}
          />
        </FileDrop>
        <div class={css.actions}>
          <Button
            kind={plan || isPlanOutdated(planning.error) ? "plain" : "primary"}
            busy={busy === "planning"}
            disabled={text.trim() === "" || busy !== undefined}
            onClick={() => void planning.makePlan()}
          >
            Plan
          </Button>
        </div>
      </Panel>
      <div ref={result} class={css.stack}>
        <Outcome planning={planning} />
        {plan && <PlanView plan={plan} busy={busy === "applying"} onApply={() => setAsking(true)} />}
      </div>
      {asking && plan && (
        <ApplyDialog
          plan={plan}
          onClose={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            void planning.apply();
          }}
        />
      )}
    </div>
  );
}

interface SourcesProps {
  current: string | undefined;
  onFile: (file: File) => Promise<void>;
  onLoad: (text: string) => void;
}

/** Buttons that load a text into the editor. */
function Sources({ current, onFile, onLoad }: SourcesProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button kind="quiet" disabled={current === undefined} onClick={() => onLoad(current ?? "")}>
        Start from the current document
      </Button>
      <Button icon="document" onClick={() => input.current?.click()}>
        Choose a file
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        aria-label="File of the document"
        accept=".yaml,.yml,.json,application/yaml,application/json"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = "";
          if (file) {
            void onFile(file);
          }
        }}
      />
    </>
  );
}
