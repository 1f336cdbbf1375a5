import { describeError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import cards from "@/components/JobCard.module.css";
import { choosePause } from "@/components/jobs.ts";
import { Loaded } from "@/components/Loaded.tsx";
import { showToast } from "@/components/toasts.ts";
import { usePolling } from "@/components/usePolling.ts";
import type { PageProps } from "@/pageProps.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { cancelImport, fetchImports } from "./calls.ts";
import { ImportJob } from "./ImportJob.tsx";
import { NewImport } from "./NewImport.tsx";

export default function Imports({ route }: PageProps) {
  const connection = route.query.get("connection") ?? "";
  const imports = usePolling(fetchImports, choosePause, []);
  const stop = async (id: string) => {
    try {
      await cancelImport(id);
      showToast("The import was cancelled");
    } catch (error) {
      showToast(describeError(error), "bad");
    }
    imports.reload();
  };
  return (
    <Page
      title="Imports"
      description="Files of past telemetry: each row becomes a message of a connection. Rows that are already stored are skipped."
    >
      <NewImport key={connection} connection={connection} onChanged={imports.reload} />
      <Panel
        title="Your imports"
        actions={
          <Button kind="quiet" icon="refresh" onClick={imports.reload}>
            Refresh
          </Button>
        }
      >
        <Loaded resource={imports}>
          {(jobs) =>
            jobs.length === 0 ? (
              <Empty title="No imports">Choose a file above; its import appears here.</Empty>
            ) : (
              <div class={cards.jobs}>
                {jobs.map((job) => (
                  <ImportJob
                    key={job.importId}
                    job={job}
                    onCancel={() => stop(job.importId)}
                    onStarted={imports.reload}
                  />
                ))}
              </div>
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}
