import { useState } from "preact/hooks";
import { fetchEntityReport } from "@/api/amendments.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { saveFile } from "@/components/saveFile.ts";

/**
 * Saves the service's printable report as a file. A frame or tab would inherit this page's security policy, which blocks the report's inline styles.
 */
export function Report({ scope, entity }: { scope: string; entity: string }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const save = async () => {
    setBusy(true);
    setError(undefined);
    try {
      saveFile(await fetchEntityReport(api, scope, entity), buildReportName(scope, entity));
    } catch (failed) {
      setError(failed);
    }
    setBusy(false);
  };
  return (
    <>
      <Button icon="download" busy={busy} onClick={() => void save()}>
        Printable report
      </Button>
      {error !== undefined && <ErrorNotice error={error} onRetry={() => void save()} />}
    </>
  );
}

function buildReportName(scope: string, entity: string): string {
  return `amendments-${`${scope}-${entity}`.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 120)}.html`;
}
