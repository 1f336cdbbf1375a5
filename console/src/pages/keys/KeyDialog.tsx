import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { revokeKey } from "@/api/keys.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { RightsList } from "@/components/rights/RightsList.tsx";
import { Time } from "@/components/Time.tsx";
import { showToast } from "@/components/toasts.ts";
import { session } from "@/session/index.ts";
import { canRevoke, classifyKey, KeyStatus, type ListedKey } from "./KeyStatus.tsx";
import css from "./Keys.module.css";
import { listBinding } from "./listBinding.tsx";
import { TelemetrySnippets } from "./TelemetrySnippets.tsx";

interface Props {
  of: ListedKey;
  onClose: () => void;
  onRevoked: () => void;
}

/** One API key, and its revocation after a confirmation. */
export function KeyDialog({ of, onClose, onRevoked }: Props) {
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  const standing = classifyKey(of, session.now());
  const works = canRevoke(standing);
  const revoke = async () => {
    setBusy(true);
    try {
      await revokeKey(api, of.keyId);
      showToast(`${of.name} is revoked`);
      onRevoked();
    } catch (error) {
      setRefused(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={of.name}
      onClose={refused === undefined ? onClose : onRevoked}
      actions={
        works && (
          <Button kind="danger" busy={busy} onClick={() => (asked ? void revoke() : setAsked(true))}>
            {asked ? "Revoke permanently" : "Revoke"}
          </Button>
        )
      }
    >
      <dl class={css.facts}>
        <Fact label="Key" value={<code>{of.keyId}</code>} />
        <Fact label="Belongs to" value={of.principal} />
        <Fact label="State" value={<KeyStatus of={of} />} />
        {of.revokedAt && <Fact label="Revoked" value={<Time at={of.revokedAt} />} />}
        <Fact label="Created" value={<Time at={of.createdAt} />} />
        <Fact label="Last used" value={of.lastUsedAt ? <Time at={of.lastUsedAt} /> : "never"} />
        <Fact
          label="Expires"
          value={of.expiresAt ? <Time at={of.expiresAt} /> : "never; it works until it is revoked"}
        />
        <Fact label="Rights" value={<RightsList rights={of.accessRights} />} />
        {listBinding(of).map((each) => (
          <Fact key={each.label} {...each} />
        ))}
      </dl>
      {works && of.connections && !asked && (
        <TelemetrySnippets keyId={of.keyId} connections={of.connections} devices={of.devices} />
      )}
      {standing === "owner disabled" && (
        <Notice kind="warn" title="The service rejects this key, because its owner is disabled.">
          It works again when an administrator enables the owner. To end it permanently, revoke it.
        </Notice>
      )}
      {asked && (
        <Notice kind="warn" title="Programs that use this key stop working.">
          The service rejects the key and all its tokens within 15 seconds. A revocation cannot be undone.
        </Notice>
      )}
      {refused !== undefined && <ErrorNotice error={refused} />}
    </Dialog>
  );
}

function Fact({ label, value }: { label: string; value: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}
