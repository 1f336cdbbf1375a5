import { type AuditBundle, fetchBundle } from "@/api/bundles.ts";
import { api } from "@/api/index.ts";
import cards from "@/components/JobCard.module.css";
import { JobCard } from "@/components/JobCard.tsx";
import { JobFiles } from "@/components/JobFiles.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatBytes, formatQuantity } from "@/format.ts";
import { formatChain } from "@/proof/chains.ts";
import { nameBundle } from "./bundleChoice.ts";

/** Maximum number of broken chains that are named. */
const MAX_NAMED = 20;

/** A bundle: its progress, and its file with a link. */
export function BundleCard({ bundle, onCancel }: { bundle: AuditBundle; onCancel: () => Promise<void> }) {
  const { bundleId, progress, brokenScopes = [], files, filters } = bundle;
  const title = nameBundle(bundle);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return (
    <JobCard
      job={bundle}
      title={title}
      facts={
        <span class={cards.range}>
          {filters.startDate && (
            <>
              from <Time at={filters.startDate} />{" "}
            </>
          )}
          {filters.endDate && (
            <>
              up to <Time at={filters.endDate} />{" "}
            </>
          )}
          {filters.entityId && <VisibleText text={`entity ${filters.entityId}`} isName />}
        </span>
      }
      progress={{
        label: `Chains done of ${title}`,
        done: progress.scopesDone,
        total: progress.scopesTotal,
        text: `${progress.scopesDone} of ${formatQuantity(progress.scopesTotal, "chain")}, ${formatQuantity(progress.records, "record")}`,
      }}
      help={
        <>
          Start it again; if it fails repeatedly, choose fewer chains. Bundle <code>{bundleId}</code>
        </>
      }
      totals={`${formatQuantity(progress.records, "record")} · ${formatBytes(bytes)}`}
      onCancel={onCancel}
    >
      {brokenScopes.length > 0 && (
        <Notice kind="alarm" title="The verification found broken chains">
          {brokenScopes.slice(0, MAX_NAMED).map(({ target, scopeKey }) => (
            <span key={`${target}/${scopeKey}`}>
              <VisibleText text={formatChain({ target, scopeKey: scopeKey ?? "" })} isName />
            </span>
          ))}
          {brokenScopes.length > MAX_NAMED && <span>and {brokenScopes.length - MAX_NAMED} more</span>}
        </Notice>
      )}
      {files.length > 0 && (
        <>
          <JobFiles
            files={files.map((file) => ({ ...file, rows: file.records }))}
            unit="Records"
            renew={async (index) => (await fetchBundle(api, bundleId)).files[index]?.url}
          />
          <p class={cards.range}>
            <code>README.txt</code> in the file explains how to verify it without the service.
          </p>
        </>
      )}
    </JobCard>
  );
}
