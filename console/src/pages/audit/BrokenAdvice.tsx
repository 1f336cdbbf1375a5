import { api } from "@/api/index.ts";
import { fetchMembers, type Member } from "@/api/team.ts";
import { useResource } from "@/components/useResource.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { buildHref } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import css from "./Audit.module.css";

/** What to do after an alteration was found: whom to call, what to preserve, what to compare. */
export function BrokenAdvice({ titled = true }: { titled?: boolean }) {
  const exports = useHasRights("Workspace.Provenance.Export");
  return (
    <section class={css.advice} aria-label="What to do now">
      {titled && <h3>What to do now</h3>}
      <ol>
        <li>
          <Contacts />
        </li>
        <li>Leave the store as it is, without repairs or restored backups: it is evidence.</li>
        <li>
          {exports ? (
            <>
              <a href={buildHref("scopes", ["bundles"])}>Export a bundle</a> of this chain, and keep it outside of this
              service.
            </>
          ) : (
            "Ask a person with Workspace.Provenance.Export for a bundle of this chain, kept outside of this service."
          )}
        </li>
        <li>
          Compare the chain with a checkpoint that you saved earlier: open a sound record, choose “Prove this record”,
          and enter the checkpoint under “Check against your own copies”. The result shows whether the records up to
          that checkpoint are unchanged.
        </li>
      </ol>
    </section>
  );
}

function Contacts() {
  return useHasRights("Workspace.Team.Read") ? <Administrators /> : <>Tell an administrator of the workspace.</>;
}

function Administrators() {
  const { data } = useResource((signal) => fetchMembers(api, signal), []);
  const names = (data ?? []).filter(isAdministrator).map(({ name, id }) => `${name} (${id})`);
  return (
    <>
      Tell an administrator of the workspace{names.length > 0 && ": "}
      <VisibleText text={names.join(", ")} />.
    </>
  );
}

function isAdministrator({ role, enabled, service }: Member): boolean {
  return role === "Admin" && enabled && !service;
}
