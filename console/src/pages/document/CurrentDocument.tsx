import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { saveFile } from "@/components/saveFile.ts";
import type { Resource } from "@/components/useResource.ts";
import { useIdentity } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Document.module.css";

/** The current workspace as YAML, with buttons to copy and save it. */
export function CurrentDocument({ resource }: { resource: Resource<string> }) {
  const { workspace } = useIdentity();
  const save = (text: string) =>
    saveFile(new Blob([text], { type: "application/yaml" }), `${workspace ?? "workspace"}.yaml`);
  return (
    <Panel
      title="Current document"
      actions={
        <>
          <Button kind="quiet" icon="refresh" busy={resource.loading} onClick={resource.reload}>
            Refresh
          </Button>
          <Button icon="download" disabled={resource.data === undefined} onClick={() => save(resource.data ?? "")}>
            Download
          </Button>
        </>
      }
    >
      <Loaded resource={resource} rows={12}>
        {(text) => (
          <div class={css.document}>
            <CodeBlock code={text} label="Current workspace document" />
          </div>
        )}
      </Loaded>
    </Panel>
  );
}
