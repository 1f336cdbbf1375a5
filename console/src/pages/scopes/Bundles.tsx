import { cancelBundle, fetchBundles } from "@/api/bundles.ts";
import { api, describeError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import cards from "@/components/JobCard.module.css";
import { choosePause } from "@/components/jobs.ts";
import { Loaded } from "@/components/Loaded.tsx";
import { showToast } from "@/components/toasts.ts";
import { usePolling } from "@/components/usePolling.ts";
import { Panel } from "@/shell/Page.tsx";
import { BundleCard } from "./BundleCard.tsx";
import { BundleForm } from "./BundleForm.tsx";
import css from "./Scopes.module.css";

/** The form of a new bundle, and the caller's bundles with their progress. */
export function Bundles() {
  const bundles = usePolling((signal) => fetchBundles(api, signal), choosePause, []);
  const stop = async (id: string) => {
    try {
      await cancelBundle(api, id);
      showToast("The bundle was cancelled");
    } catch (error) {
      showToast(describeError(error), "bad");
    }
    bundles.reload();
  };
  return (
    <div class={css.stack}>
      <BundleForm onStarted={bundles.reload} />
      <Panel
        title="Your bundles"
        actions={
          <Button kind="quiet" icon="refresh" onClick={bundles.reload}>
            Refresh
          </Button>
        }
      >
        <Loaded resource={bundles}>
          {(found) =>
            found.length === 0 ? (
              <Empty title="No bundles">Start a bundle above; it appears here.</Empty>
            ) : (
              <div class={cards.jobs}>
                {found.map((bundle) => (
                  <BundleCard key={bundle.bundleId} bundle={bundle} onCancel={() => stop(bundle.bundleId)} />
                ))}
              </div>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}
