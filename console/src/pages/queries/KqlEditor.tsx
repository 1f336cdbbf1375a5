import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { CodeEditor } from "@/components/CodeEditor.tsx";
import type { TextError } from "@/components/textPlaces.ts";
import { completeKql } from "./kql/completion.ts";
import { tokenizeKql } from "./kql/tokens.ts";
import { useKqlNames } from "./kql/useKqlNames.ts";

interface Props {
  value: string;
  onInput: (value: string) => void;
  /** Called on Ctrl+Enter, or Cmd+Enter. */
  onRun?: () => void;
  error?: TextError | undefined;
  rows?: number;
  /** Declared parameters, for completion. */
  parameters?: readonly { name: string; type: string }[];
  /** Buttons beside the label. */
  actions?: ComponentChildren;
}

const NO_PARAMETERS: NonNullable<Props["parameters"]> = [];

/** An editor for KQL: colours, completion of the workspace's names, and a mark at the engine's error. */
export function KqlEditor({ error, onRun, parameters = NO_PARAMETERS, ...rest }: Props) {
  const workspace = useKqlNames();
  const names = useMemo(() => ({ ...workspace, parameters }), [workspace, parameters]);
  const hint = onRun ? "Ctrl+Enter runs it; Ctrl+Space completes." : "Ctrl+Space completes.";
  return (
    <CodeEditor
      label="KQL"
      errors={error ? [error] : []}
      hint={hint}
      tokenize={tokenizeKql}
      complete={(text, offset) => completeKql(text, offset, names)}
      {...(onRun ? { onRun } : {})}
      {...rest}
    />
  );
}
