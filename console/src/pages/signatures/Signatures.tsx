import { api } from "@/api/index.ts";
import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Pager } from "@/components/Pager.tsx";
import { useCursors } from "@/components/useCursors.ts";
import { useResource } from "@/components/useResource.ts";
import { formatCount } from "@/format.ts";
import type { PageProps } from "@/pageProps.ts";
import { navigate } from "@/router/route.ts";
import { Page, Panel } from "@/shell/Page.tsx";
import { SignatureFilterBar } from "./SignatureFilterBar.tsx";
import {
  buildSignedAddress,
  describeSubject,
  fetchSignatures,
  type ListedSignature,
  PAGE,
  parseFilters,
  type SignatureFilters,
} from "./signatureList.ts";

const COLUMNS: readonly Column<ListedSignature>[] = [
  { key: "at", title: "Signed", type: "time", value: (row) => row.SignedAt, width: 168, sortable: false },
  { key: "name", title: "Name", value: (row) => row.PrintedName, sortable: false },
  { key: "who", title: "Member", value: (row) => row.UserID, sortable: false },
  { key: "meaning", title: "Meaning", value: (row) => row.Meaning, width: 110, sortable: false },
  { key: "statement", title: "Statement", value: (row) => row.Statement, sortable: false },
  { key: "what", title: "Decision about", value: describeSubject, sortable: false },
  { key: "record", title: "Record", type: "code", value: (row) => row.recordID, width: 128, sortable: false },
];

/** The page of all electronic signatures, for periodic review. */
export default function Signatures({ route }: PageProps) {
  const filters = parseFilters(route);
  const key = JSON.stringify(filters);
  return (
    <Page title="Signatures" description="Every electronic signature of a decision, with its record in the audit log.">
      <Panel>
        <SignatureFilterBar key={`bar ${key}`} filters={filters} />
        <SignaturePages key={key} filters={filters} />
      </Panel>
    </Page>
  );
}

function SignaturePages({ filters }: { filters: SignatureFilters }) {
  const { cursor, page: requested, toNext, toPrevious } = useCursors();
  const resource = useResource(
    async (signal) => ({ ...(await fetchSignatures(api, filters, cursor, signal)), page: requested }),
    [cursor],
  );
  return (
    <Loaded resource={resource} rows={8}>
      {({ signatures, cursor: next, page }) => (
        <>
          <DataTable
            label="Signatures, newest first"
            columns={COLUMNS}
            rows={signatures}
            rowKey={(row) => `${row.target}/${row.scopeKey}/${row.recordID}`}
            onOpen={(row) => navigate(buildSignedAddress(row) ?? "#/audit")}
            empty={<NoSignatures filters={filters} />}
          />
          {(signatures.length > 0 || page > 1) && (
            <Pager text={describePage(page, signatures.length)} onPrevious={toPrevious} onNext={toNext(next)} />
          )}
        </>
      )}
    </Loaded>
  );
}

function NoSignatures({ filters }: { filters: SignatureFilters }) {
  if (Object.values(filters).some((value) => value !== "")) {
    return <Empty title="No signature matches">Change or clear the filters.</Empty>;
  }
  return (
    <Empty title="No signatures yet">
      Decisions need a signature only if the workspace requires it; see the page <a href="#/policies">Policies</a>.
    </Empty>
  );
}

function describePage(page: number, rows: number): string {
  const first = (page - 1) * PAGE;
  return `Signatures ${formatCount(first + 1)} to ${formatCount(first + rows)}`;
}
