import { useEffect, useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { escapeInvisible } from "@/components/invisible.ts";
import { Notice } from "@/components/Notice.tsx";
import type { PageProps } from "@/pageProps.ts";
import { BrokenChain, type Verification } from "@/pages/scopes/BrokenChains.tsx";
import { formatChain } from "@/proof/chains.ts";
import { rememberScope } from "@/proof/scopes.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Page } from "@/shell/Page.tsx";
import css from "./Audit.module.css";
import { ChainPicker } from "./ChainPicker.tsx";
import { ExportDialog } from "./ExportDialog.tsx";
import { FilterBar } from "./FilterBar.tsx";
import { buildAddress, findAddressError, isComplete, type Place, parsePlace } from "./place.ts";
import { RecordPanel } from "./RecordPanel.tsx";
import { RecordTable } from "./RecordTable.tsx";
import { useListing } from "./useListing.ts";
import { VerifyDialog } from "./VerifyDialog.tsx";
import { WriteDialog } from "./WriteDialog.tsx";

type Open = "verify" | "export" | "write" | undefined;

/** The audit page: records of a chain, with verification, proof and export. */
export default function Audit({ route }: PageProps) {
  const [shown, setShown] = useState<Open>();
  const error = findAddressError(route);
  if (error !== undefined) {
    return (
      <Page title="Audit log">
        <Notice kind="bad" title={escapeInvisible(error)}>
          <a href={buildHref("audit")}>Open the audit log</a>
        </Notice>
      </Page>
    );
  }
  const place = parsePlace(route);
  const whole = isComplete(place.chain);
  const close = () => setShown(undefined);
  return (
    <Page
      title="Audit log"
      description="Who changed what, and when. Each record contains the hash of the previous one, so later changes are detected."
      actions={whole && <Actions place={place} onOpen={setShown} />}
    >
      <ChainPicker key={place.chain.target} chain={place.chain} />
      {whole ? (
        <Chain key={`${place.chain.target}/${place.chain.scopeKey}`} place={place} shown={shown} onClose={close} />
      ) : (
        <Empty title="Which scope?">
          Choose or enter the scope of the records: a line, a batch, a system. A scope exists from its first record on.
        </Empty>
      )}
    </Page>
  );
}

function Actions({ place, onOpen }: { place: Place; onOpen: (open: Open) => void }) {
  const canWrite = useHasRights("Workspace.Provenance.Write") && place.chain.target !== "DomainAmendments";
  const canExport = useHasRights("Workspace.Provenance.Export");
  const canVerify = useHasRights("Workspace.Provenance.Verify");
  return (
    <>
      {canWrite && (
        <Button icon="plus" onClick={() => onOpen("write")}>
          Write an event
        </Button>
      )}
      {canExport && (
        <Button icon="download" onClick={() => onOpen("export")}>
          Export
        </Button>
      )}
      {canVerify && (
        <Button kind={place.record === undefined ? "primary" : "plain"} icon="chain" onClick={() => onOpen("verify")}>
          Verify chain
        </Button>
      )}
    </>
  );
}

function Chain({ place, shown, onClose }: { place: Place; shown: Open; onClose: () => void }) {
  const { chain, filters, record } = place;
  const listed = useListing(place);
  const [verified, setVerified] = useState<Verification>();
  useEffect(() => rememberScope(chain.scopeKey), [chain.scopeKey]);
  const select = (sequence: number | undefined) => navigate(buildAddress({ ...place, record: sequence }), "replace");
  const toEnd = () => {
    if (place.at === undefined) {
      listed.refresh();
    } else {
      navigate(buildAddress({ ...place, at: undefined }), "replace");
    }
  };
  return (
    <>
      <BrokenChain chain={chain} newest={verified} />
      <FilterBar key={JSON.stringify([filters, place.at])} place={place} />
      <div class={record === undefined ? css.alone : css.split}>
        <RecordTable place={place} listed={listed} onOpen={select} onNewest={toEnd} />
        {record !== undefined && (
          <RecordPanel
            chain={chain}
            sequence={record}
            ask={listed.ask}
            onGo={select}
            onClose={() => select(undefined)}
            onVerified={setVerified}
          />
        )}
      </div>
      {shown === "verify" && <VerifyDialog chain={chain} ask={listed.ask} onVerified={setVerified} onClose={onClose} />}
      {shown === "export" && <ExportDialog chain={chain} ask={listed.ask} filters={filters} onClose={onClose} />}
      {shown === "write" && (
        <WriteDialog
          chain={chain}
          label={formatChain(chain)}
          onClose={onClose}
          onWritten={(sequence) => {
            onClose();
            listed.refresh();
            select(sequence);
          }}
        />
      )}
    </>
  );
}
