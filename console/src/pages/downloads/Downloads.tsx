import { useState } from "preact/hooks";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { toast } from "@/components/toasts.ts";
import { usePolling } from "@/components/usePolling.ts";
import type { PageProps } from "@/pages.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { cancel, list, named, type Source } from "./calls.ts";
import css from "./Downloads.module.css";
import { Job } from "./Job.tsx";
import { pace } from "./pace.ts";
import { Start } from "./Start.tsx";
import { noteStarted, startedSource } from "./started.ts";

export default function Downloads({ route }: PageProps) {
  const downloads = usePolling(list, pace, []);
  const [from] = useState<Source>(() => asked(route.query));
  const stop = async (id: string) => {
    try {
      await cancel(id);
      toast("The download was cancelled");
    } catch (error) {
      toast(error instanceof ApiError ? `${error.detail} (${error.code}, ${error.requestId})` : String(error), "bad");
    }
    downloads.reload();
  };
  return (
    <Page
      title="Downloads"
      description="Archived telemetry as files. They are made in the background and kept for a day."
    >
      <Start
        from={from}
        onStarted={(download, source) => {
          noteStarted(download.downloadId, named(source));
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
              <Empty title="No downloads">Choose what you need above and start one; it appears here.</Empty>
            ) : (
              <div class={css.jobs}>
                {jobs.map((job) => (
                  <Job
                    key={job.downloadId}
                    download={job}
                    source={startedSource(job.downloadId)}
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

/** What an address asks for: `#/downloads?connection=pump-rig`, or `?surface=cooling`. */
function asked(query: URLSearchParams): Source {
  const connection = query.get("connection") ?? "";
  const surface = query.get("surface") ?? "";
  const kind = surface === "" ? "connection" : connection === "" ? "surface" : "within";
  return { kind, connection, surface };
}
