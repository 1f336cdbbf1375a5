import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { revokeKey } from "@/api/keys.ts";
import { Button } from "@/components/Button.tsx";
import { ConfirmDialog } from "@/components/ConfirmDialog.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Notice } from "@/components/Notice.tsx";
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
  const [revoking, setRevoking] = useState(false);
  const standing = classifyKey(of, session.now());
  const works = canRevoke(standing);
  if (revoking) {
    return <RevokeDialog of={of} onCancel={() => setRevoking(false)} onRevoked={onRevoked} />;
  }
  return (
    <Dialog
      title={of.name}
      onClose={onClose}
      actions={
        works && (
          <Button kind="danger" onClick={() => setRevoking(true)}>
            Revoke
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
      {works && of.connections && (
        <TelemetrySnippets keyId={of.keyId} connections={of.connections} devices={of.devices} />
      )}
      {standing === "owner disabled" && (
        <Notice kind="warn" title="The service rejects this key, because its owner is disabled.">
          It works again when an administrator enables the owner. To end it permanently, revoke it.
        </Notice>
      )}
    </Dialog>
  );
}

interface RevokeProps {
  of: ListedKey;
  onCancel: () => void;
  onRevoked: () => void;
}

/** Revokes a key after a confirmation. */
function RevokeDialog({ of, onCancel, onRevoked }: RevokeProps) {
  const revoke = async () => {
    await revokeKey(api, of.keyId);
    showToast(`${of.name} is revoked`);
    onRevoked();
  };
  return (
    <ConfirmDialog
      title={`Revoke ${of.name}?`}
      label="Revoke permanently"
      onClose={(failed) => (failed ? onRevoked() : onCancel())}
      onConfirm={revoke}
    >
      <Notice kind="warn" title="Programs that use this key stop working.">
        The service rejects the key and all its tokens within 15 seconds. A revocation cannot be undone.
      </Notice>
    </ConfirmDialog>
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
