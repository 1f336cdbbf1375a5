import { useState } from "preact/hooks";
import { fetchAllAuditScopes } from "@/api/auditScopes.ts";
import { type NewBundle, startBundle } from "@/api/bundles.ts";
import { JobRequests } from "@/api/idempotency.ts";
import { ApiError, api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { DateField } from "@/components/DateField.tsx";
import { Checkbox, Field } from "@/components/Field.tsx";
import { describeStart } from "@/components/jobs.ts";
import { Loaded } from "@/components/Loaded.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useInvalidFocus } from "@/components/useInvalidFocus.ts";
import { useResource } from "@/components/useResource.ts";
import type { ChainName } from "@/proof/chains.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { Panel } from "@/shell/Page.tsx";
import { ChainChoice } from "./ChainChoice.tsx";
import css from "./Scopes.module.css";

/** Starts a bundle of chosen chains, times and an entity. */
export function BundleForm({ onStarted }: { onStarted: () => void }) {
  const resource = useResource((signal) => fetchAllAuditScopes(api, undefined, signal), []);
  const [chains, setChains] = useState<readonly ChainName[]>([]);
  const [start, setStart] = useState("");
  const [end, setEnd] = useState("");
  const [entity, setEntity] = useState("");
  const [receipts, setReceipts] = useState(false);
  const [busy, setBusy] = useState(false);
  const [requests] = useState(() => new JobRequests());
  const [error, setError] = useState<unknown>();
  const { element, focusInvalid } = useInvalidFocus<HTMLFormElement>();
  const of = (field: string) => (error instanceof ApiError ? error.fieldMessage(field) : undefined);
  useUnsavedWarning(chains.length > 0 || start !== "" || end !== "" || entity !== "");
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const bundle: NewBundle = {
        chains,
        startDate: start === "" ? undefined : start,
        endDate: end === "" ? undefined : end,
        entityId: entity === "" ? undefined : entity,
        receipts: receipts || undefined,
      };
      const job = await requests.run(bundle, (key) => startBundle(api, bundle, key));
      showToast(describeStart("bundle", job));
      setChains([]);
      setStart("");
      setEnd("");
      setEntity("");
      onStarted();
    } catch (failure) {
      setError(failure);
      focusInvalid();
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel title="New bundle">
      <form ref={element} class={css.form} onSubmit={(event) => void submit(event)}>
        <p class={css.soft}>
          One zip file with records, signed checkpoints, proofs and a report. Anyone can verify it without this service.
        </p>
        <Loaded resource={resource}>
          {(scopes) => <ChainChoice scopes={scopes} chosen={chains} onChange={setChains} />}
        </Loaded>
        <div class={css.fields}>
          <DateField label="From" value={start} onInput={setStart} error={of("startDate")} />
          <DateField label="Up to" value={end} onInput={setEnd} error={of("endDate")} />
          <Field
            label="Entity"
            value={entity}
            onInput={setEntity}
            error={of("entityId")}
            placeholder="any"
            hint="With a time or an entity, the bundle proves each record in it, but not that none is missing"
          />
        </div>
        <Checkbox
          label="Add a receipt for each record; any COSE tool can verify it"
          checked={receipts}
          onChange={setReceipts}
        />
        {error !== undefined && <ErrorNotice error={error} />}
        <div>
          <Button kind="primary" type="submit" busy={busy} disabled={chains.length === 0}>
            Start bundle
          </Button>
        </div>
      </form>
    </Panel>
  );
}
