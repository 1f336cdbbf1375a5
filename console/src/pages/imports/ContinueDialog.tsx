import { useEffect } from "preact/hooks";
import type { HistoryImport, ImportMapping, StoredMapping } from "@/api/imports.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { showToast } from "@/components/toasts.ts";
import { useWork } from "@/components/useWork.ts";
import { startImport } from "./calls.ts";
import css from "./Imports.module.css";
import { MappingPreview } from "./MappingPreview.tsx";
import { useMappedPreview } from "./useMappedPreview.ts";

interface Props {
  job: HistoryImport;
  onClose: () => void;
  /** Called after the start. */
  onStarted: () => void;
}

/** A dialog that previews and starts an import whose file was uploaded before, perhaps by an earlier page. */
export function ContinueDialog({ job, onClose, onStarted }: Props) {
  const { importId, fileName, connection, format } = job;
  const mapped = useMappedPreview(toMapping(job.mapping));
  const { busy, error, run } = useWork();
  const show = () => void run(() => mapped.load(importId));
  useEffect(show, []);
  const start = () =>
    void run(async () => {
      await startImport(importId, mapped.mapping);
      showToast("The import was started");
      onStarted();
    });
  return (
    <Dialog
      title={`${fileName} into ${connection}`}
      wide
      onClose={onClose}
      actions={(close) => (
        <>
          <Button onClick={close}>Close</Button>
          <Button busy={busy} disabled={mapped.mapping.timestamp === ""} onClick={show}>
            Preview again
          </Button>
          {mapped.preview && (
            <Button kind="primary" busy={busy} onClick={start}>
              Start import
            </Button>
          )}
        </>
      )}
    >
      <div class={css.form}>
        <MappingPreview format={format} mapped={mapped} error={error} />
      </div>
    </Dialog>
  );
}

/** Returns the mapping of a stored import for a request, without its defaults. */
function toMapping(stored: StoredMapping): ImportMapping {
  return Object.fromEntries(Object.entries(stored).filter(([, value]) => value !== null)) as unknown as ImportMapping;
}
