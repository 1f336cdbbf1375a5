import { useId } from "preact/hooks";
import { fetchAuditScopes, fetchPendingAmendments, MAX_PAGE } from "@/api/auditScopes.ts";
import { api } from "@/api/index.ts";
import { formatQuantity } from "@/format.ts";
import { MAX_SCOPE, type Target } from "@/proof/chains.ts";
import { recallScopes } from "@/proof/scopes.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Button } from "./Button.tsx";
import css from "./ScopeField.module.css";
import { mergeScopes, type OfferedScope } from "./scopeOptions.ts";
import { useResource } from "./useResource.ts";

interface Props {
  /** The container whose scopes are offered. */
  target: Target;
  value: string;
  onInput: (value: string) => void;
  /** Called with the submitted scope. */
  onOpen: (scope: string) => void;
}

/** A combobox for a scope: it offers the recent scopes of this tab, then all scopes that the token can list. */
export function ScopeField({ target, value, onInput, onOpen }: Props) {
  const id = useId();
  const lists = useHasRights("Workspace.Provenance.Read");
  const { data } = useResource((signal) => (lists ? listScopes(target, signal) : listPending(signal)), [target, lists]);
  return (
    <form
      class={css.scope}
      onSubmit={(event) => {
        event.preventDefault();
        onOpen(value);
      }}
    >
      <label for={id}>Scope</label>
      <input
        id={id}
        list={`${id}-offered`}
        value={value}
        maxLength={MAX_SCOPE}
        placeholder="line-1"
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <datalist id={`${id}-offered`}>
        {mergeScopes(recallScopes(), data ?? []).map(({ scope, records }) => (
          <option key={scope} value={scope} label={records === undefined ? "" : formatQuantity(records, "record")} />
        ))}
      </datalist>
      <Button type="submit" disabled={value === ""}>
        Open
      </Button>
    </form>
  );
}

async function listScopes(target: Target, signal: AbortSignal): Promise<OfferedScope[]> {
  const { scopes } = await fetchAuditScopes(api, { target, limit: MAX_PAGE }, signal);
  return scopes.map(({ scopeKey, records }) => ({ scope: scopeKey ?? "", records }));
}

/** Without the right to list scopes: those with pending amendments. */
async function listPending(signal: AbortSignal): Promise<OfferedScope[]> {
  const { amendments } = await fetchPendingAmendments(api, { limit: MAX_PAGE }, signal);
  return amendments.map(({ ScopeKey: scope }) => ({ scope, records: undefined }));
}
