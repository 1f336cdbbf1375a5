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
import { cancelDownload, describeSource, fetchDownloads, type Source } from "./calls.ts";
import { Job } from "./Job.tsx";
import { recallSource, rememberSource } from "./rememberedSources.ts";
import { Start } from "./Start.tsx";

export default function Downloads({ route }: PageProps) {
  const downloads = usePolling(fetchDownloads, choosePause, []);
  const stop = async (id: string) => {
    try {
      await cancelDownload(id);
      showToast("The download was cancelled");
    } catch (error) {
      showToast(describeError(error), "bad");
    }
    downloads.reload();
  };
  return (
    <Page
      title="Downloads"
      description="Archived telemetry as files. The service prepares them in the background and deletes them after one day."
    >
      <Start
        key={route.query.toString()}
        from={parseSource(route.query)}
        onStarted={(download, source) => {
          rememberSource(download.downloadId, describeSource(source));
          downloads.reload();
        }}
      />
      <Panel
        title="Your downloads"
        actions={
          <Button kind="quiet" icon="refresh" onClick={downloads.reload}>
            Refresh
          </Button>
        }
      >
        <Loaded resource={downloads}>
          {(jobs) =>
            jobs.length === 0 ? (
              <Empty title="No downloads">Start a download above; it appears here.</Empty>
            ) : (
              <div class={cards.jobs}>
                {jobs.map((job) => (
                  <Job
                    key={job.downloadId}
                    download={job}
                    source={recallSource(job.downloadId)}
                    onCancel={() => stop(job.downloadId)}
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

/** Parses the source in an address: `#/downloads?connection=pump-rig`, or `?surface=cooling`. */
function parseSource(query: URLSearchParams): Source {
  const connection = query.get("connection") ?? "";
  const surface = query.get("surface") ?? "";
  const kind = surface === "" ? "connection" : connection === "" ? "surface" : "within";
  return { kind, connection, surface };
}
