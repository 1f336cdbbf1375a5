import { useState } from "preact/hooks";
import { type ProposedSignal, proposeSignals } from "@/api/connections.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Checkbox, Field } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { usePolling } from "@/components/usePolling.ts";
import { formatCount, formatReading } from "@/format.ts";
import css from "./Signals.module.css";
import { listNewProposals, type SignalDraft, toProposedDraft } from "./signalDrafts.ts";

interface Props {
  lookup: string;
  declared: readonly SignalDraft[];
  onAdd: (signals: readonly SignalDraft[]) => void;
  onClose: () => void;
}

const EVERY_MS = 5000;
const NEVER_MS = 2 ** 31 - 1;

/** A dialog that waits for messages of a connection, and offers their fields as signals. */
export function SignalProposals({ lookup, declared, onAdd, onClose }: Props) {
  const [omitted, setOmitted] = useState<ReadonlySet<string>>(new Set());
  const [units, setUnits] = useState<ReadonlyMap<string, string>>(new Map());
  const [withLimits, setWithLimits] = useState(false);
  const resource = usePolling(
    (signal) => proposeSignals(api, lookup, signal),
    // The proposal must not change while the user chooses.
    ({ data }) => (data && data.messages > 0 ? NEVER_MS : EVERY_MS),
    [lookup],
  );
  const proposals = listNewProposals(resource.data?.signals ?? [], declared);
  const chosen = proposals.filter(({ pointer }) => !omitted.has(pointer));
  const add = () =>
    onAdd(chosen.map((each) => ({ ...toProposedDraft(each, withLimits), unit: units.get(each.pointer) ?? "" })));
  const toggle = (pointer: string, on: boolean) => {
    const changed = new Set(omitted);
    if (on) {
      changed.delete(pointer);
    } else {
      changed.add(pointer);
    }
    setOmitted(changed);
  };
  return (
    <Dialog
      title="Propose signals"
      wide
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" disabled={chosen.length === 0} onClick={add}>
            {chosen.length === 1 ? "Add 1 signal" : `Add ${formatCount(chosen.length)} signals`}
          </Button>
        </>
      }
    >
      <Loaded resource={resource}>
        {({ messages }) =>
          messages === 0 ? (
            <Empty title="No messages yet">
              This dialog waits for the first messages of {lookup}. Start its devices, or send some with POST
              /oi-api/telemetry/{lookup}.
            </Empty>
          ) : proposals.length === 0 ? (
            <Empty title="Nothing to propose">All fields of the newest messages are signals.</Empty>
          ) : (
            <>
              <p class={css.about}>
                Fields of the {messages === 1 ? "first message" : `newest ${formatCount(messages)} messages`}. Enter
                their units; then save the connection to store them.
              </p>
              <Proposals
                proposals={proposals}
                isChosen={(pointer) => !omitted.has(pointer)}
                unit={(pointer) => units.get(pointer) ?? ""}
                onToggle={toggle}
                onUnit={(pointer, unit) => setUnits(new Map(units).set(pointer, unit))}
              />
              <Checkbox
                label="Take the lowest and highest observed value as the expected range"
                checked={withLimits}
                onChange={setWithLimits}
              />
            </>
          )
        }
      </Loaded>
    </Dialog>
  );
}

interface ProposalsProps {
  proposals: readonly ProposedSignal[];
  isChosen: (pointer: string) => boolean;
  unit: (pointer: string) => string;
  onToggle: (pointer: string, on: boolean) => void;
  onUnit: (pointer: string, unit: string) => void;
}

function Proposals({ proposals, isChosen, unit, onToggle, onUnit }: ProposalsProps) {
  return (
    <div class={css.proposals}>
      <table aria-label="Proposed signals">
        <thead>
          <tr>
            <th scope="col">Signal</th>
            <th scope="col">Pointer</th>
            <th scope="col">Type</th>
            <th scope="col">Share of messages</th>
            <th scope="col">Observed</th>
            <th scope="col">Unit</th>
          </tr>
        </thead>
        <tbody>
          {proposals.map((each) => (
            <tr key={each.pointer}>
              <td>
                <Checkbox
                  label={each.name}
                  checked={isChosen(each.pointer)}
                  onChange={(on) => onToggle(each.pointer, on)}
                />
              </td>
              <td>
                <code>{each.pointer}</code>
              </td>
              <td>{each.type}</td>
              <td>{formatCount(Math.round(each.share * 100))} %</td>
              <td>{formatRange(each)}</td>
              <td>
                <Field
                  label={`Unit of ${each.name}`}
                  hideLabel
                  value={unit(each.pointer)}
                  onInput={(text) => onUnit(each.pointer, text)}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function formatRange({ min, max }: ProposedSignal): string {
  if (min === null || max === null) {
    return "";
  }
  return min === max ? formatReading(min) : `${formatReading(min)} to ${formatReading(max)}`;
}
