import { useState } from "preact/hooks";
import type { ShownItem } from "@/administration/ItemPage.tsx";
import { RefusalNotice } from "@/administration/RefusalNotice.tsx";
import { RemoveButton } from "@/administration/RemoveButton.tsx";
import { Attempts } from "@/api/attempts.ts";
import { ApiError, api, isOutdated } from "@/api/index.ts";
import { storeItem } from "@/api/items.ts";
import { type Member, memberPath } from "@/api/team.ts";
import { Button } from "@/components/Button.tsx";
import { ConfirmDialog } from "@/components/ConfirmDialog.tsx";
import { showToast } from "@/components/toasts.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import { listMissingRights } from "@/session/rights.ts";
import { MEMBER_RULES } from "./memberRules.ts";

/** Buttons that disable, enable and remove a member, each after a confirmation. */
export function MemberActions(shown: ShownItem<Member>) {
  const { item, reload } = shown;
  const who = useIdentity();
  const manages = useHasRights("Workspace.Team.Manage");
  if (!manages || item.id === who.principal || listMissingRights(who.accessRights, item.accessRights).length > 0) {
    return null;
  }
  return (
    <>
      <EnableButton {...shown} />
      <RemoveButton
        noun="member"
        name={item.name}
        path={memberPath(item.id)}
        etag={item.etag}
        page="team"
        onReload={reload}
      >
        <p>
          The member's API keys and tokens end permanently, and the ID <code>{item.id}</code> can never be used again,
          because audit records name it. To lock the member out for a while, disable it instead.
        </p>
      </RemoveButton>
    </>
  );
}

function EnableButton({ item, replace, reload }: ShownItem<Member>) {
  const [asking, setAsking] = useState(false);
  const [attempts] = useState(() => new Attempts());
  const close = () => setAsking(false);
  const verb = item.enabled ? "Disable" : "Enable";
  const path = memberPath(item.id);
  /** Returns the member if an earlier attempt, whose reply was lost, enabled or disabled it. */
  const findChanged = async () => {
    const now = await api.get<Member>(path);
    return now.enabled === item.enabled ? undefined : now;
  };
  const setEnabled = async () => {
    const body = { ...MEMBER_RULES.toBody(MEMBER_RULES.toDraft(item)), enabled: !item.enabled };
    const stored = await attempts.run(() => storeItem<Member>(api, path, body, item.etag), findChanged);
    showToast(`“${item.name}” is ${stored.enabled ? "enabled" : "disabled"}`);
    close();
    replace(stored);
  };
  const look = () => {
    close();
    reload();
  };
  /** Changes the member; the page reports if another person removed it. */
  const confirm = () =>
    setEnabled().catch((failure: unknown) => {
      if (!(failure instanceof ApiError && failure.code === MEMBER_RULES.removedCode)) {
        throw failure;
      }
      look();
    });
  return (
    <>
      <Button onClick={() => setAsking(true)}>{verb}</Button>
      {asking && (
        <ConfirmDialog
          title={`${verb} “${item.name}”?`}
          label={`${verb} the member`}
          danger={item.enabled}
          onClose={close}
          onConfirm={confirm}
          renderError={(error) => <RefusalNotice error={error} onReload={look} />}
          isFinal={isOutdated}
        >
          <p>
            {item.enabled
              ? "Within 15 seconds the service rejects the member's API keys, and ends their tokens and live streams."
              : "The member's API keys work again. Earlier tokens remain invalid."}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
