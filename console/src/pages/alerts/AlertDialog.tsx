import { useState } from "preact/hooks";
import { type Alert, acknowledgeAlert } from "@/api/alerts.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Facts } from "@/components/Facts.tsx";
import { TextArea } from "@/components/Field.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { showToast } from "@/components/toasts.ts";
import { useWork } from "@/components/useWork.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { formatNumber } from "@/format.ts";
import { buildHref } from "@/router/route.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import { AlertStatus, SeverityBadge } from "./AlertTable.tsx";
import { announceAlertChange, formatLabels } from "./activeAlerts.ts";

interface Props {
  alert: Alert;
  onClose: () => void;
  onChanged: () => void;
}

/** One alert; a person acknowledges it here. */
export function AlertDialog({ alert, onClose, onChanged }: Props) {
  const manages = useHasRights("Workspace.Alert.Manage");
  const { principal } = useIdentity();
  const [comment, setComment] = useState("");
  const { busy, error, run } = useWork();
  /** The alert with an acknowledgement that came before this one, which was not recorded. */
  const [earlier, setEarlier] = useState<Alert>();
  const canAcknowledge = manages && principal !== null && alert.state !== "resolved" && alert.acknowledgedBy === null;
  const acknowledge = async () => {
    const stored = await acknowledgeAlert(api, alert.id, comment.trim());
    announceAlertChange();
    if (stored.acknowledgedBy !== principal || (stored.comment ?? "") !== comment.trim()) {
      setEarlier(stored);
      return;
    }
    showToast(`“${alert.name}” is acknowledged`);
    onChanged();
    onClose();
  };
  return (
    <Dialog
      title={alert.name}
      onClose={() => {
        onClose();
        if (error !== undefined || earlier) {
          onChanged();
        }
      }}
      actions={(close) => (
        <>
          <Button onClick={close}>Close</Button>
          {canAcknowledge && !earlier && (
            <Button kind="primary" busy={busy} onClick={() => void run(acknowledge)}>
              Acknowledge
            </Button>
          )}
        </>
      )}
    >
      <Facts facts={listFacts(earlier ?? alert)} />
      {earlier && (
        <Notice
          kind="warn"
          title={
            earlier.acknowledgedBy === principal
              ? "You have already acknowledged this alert"
              : `${earlier.acknowledgedBy} acknowledged this alert first`
          }
        >
          {earlier.comment ? "The comment above is recorded" : "No comment is recorded"}; this acknowledgement is not.
        </Notice>
      )}
      {canAcknowledge && (
        <TextArea
          label="Comment"
          rows={3}
          hint="Optional. The acknowledgement is recorded in the audit log with your name"
          value={comment}
          onInput={setComment}
          readOnly={earlier !== undefined}
        />
      )}
      {error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  );
}

function listFacts(alert: Alert) {
  const labels = formatLabels(alert.labels);
  return [
    { label: "State", value: <AlertStatus state={alert.state} /> },
    { label: "Severity", value: <SeverityBadge severity={alert.severity} /> },
    { label: "Rule", value: <a href={buildHref("alerts", [alert.rule])}>{alert.rule}</a> },
    { label: "Surface", value: alert.surface },
    ...(labels === "" ? [] : [{ label: "Labels", value: <VisibleText text={labels} /> }]),
    { label: "Value", value: alert.value === null ? "–" : formatNumber(alert.value) },
    { label: "Started", value: <Time at={alert.startedAt} /> },
    { label: "Fired", value: <Time at={alert.firedAt} /> },
    { label: "Resolved", value: <Time at={alert.resolvedAt} /> },
    ...(alert.acknowledgedBy === null
      ? []
      : [
          { label: "Acknowledged by", value: <VisibleText text={alert.acknowledgedBy} /> },
          { label: "Acknowledged", value: <Time at={alert.acknowledgedAt} /> },
        ]),
    ...(alert.comment ? [{ label: "Comment", value: <VisibleText text={alert.comment} /> }] : []),
  ];
}
