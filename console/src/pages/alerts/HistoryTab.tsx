import { useEffect, useState } from "preact/hooks";
import { type Alert, fetchAlerts } from "@/api/alerts.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { PastRangeFields } from "@/components/PastRangeFields.tsx";
import { ALL, checkRange, createRange, endsNow, type PastRange, resolveRange } from "@/components/pastRanges.ts";
import { useResource } from "@/components/useResource.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Alerts.module.css";
import { AlertTable } from "./AlertTable.tsx";
import { filterByStart, reachesBefore } from "./alertTimes.ts";

const PAGE = 200;
const RANGES = [
  { value: ALL, label: "the last 90 days" },
  { value: "86400", label: "the last 24 hours" },
  { value: "604800", label: "the last 7 days" },
];

/** The alerts of the last 90 days, or of a part of them, newest first. */
export function HistoryTab() {
  const [range, setRange] = useState(() => createRange(ALL));
  return (
    <Panel>
      <div class={css.range}>
        <PastRangeFields label="Started" range={range} presets={RANGES} onChange={setRange} />
      </div>
      <History range={range} />
    </Panel>
  );
}

/** Loads page by page; in a shorter range on to the page that covers its start. */
function History({ range }: { range: PastRange }) {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [earlier, setEarlier] = useState<readonly Alert[]>([]);
  const cursor = cursors.at(-1);
  const page = useResource((signal) => fetchAlerts(api, { limit: PAGE, cursor }, signal), [cursor]);
  const fresh = (page.data?.alerts ?? []).filter((alert) => earlier.every(({ id }) => id !== alert.id));
  const alerts = [...earlier, ...fresh];
  const { from, to } = resolveRange(range);
  // Clocks differ a little, and the newest alert must not be hidden.
  const end = endsNow(range) ? Number.POSITIVE_INFINITY : to;
  const usable = checkRange(range) === undefined;
  const next = page.data?.cursor;
  const hasOlder = next !== undefined && next !== cursor && !reachesBefore(alerts, from);
  const showOlder = () => {
    if (next !== undefined) {
      setEarlier(alerts);
      setCursors([...cursors, next]);
    }
  };
  const restart = () => {
    setEarlier([]);
    setCursors([]);
    page.reload();
  };
  const loadsOn = usable && hasOlder && range.preset !== ALL && !page.loading;
  useEffect(() => {
    if (loadsOn) showOlder();
  }, [loadsOn, next]);
  const none = range.preset === ALL ? "No alerts yet" : "No alerts in this period";
  return (
    <Loaded resource={page} rows={6}>
      {() =>
        usable && (
          <>
            <AlertTable
              label="History of alerts"
              alerts={filterByStart(alerts, from, end)}
              withEnd
              empty={{ title: none, text: "Every alert of the last 90 days is listed here." }}
              onChanged={restart}
            />
            {hasOlder && (
              <Button busy={page.loading} onClick={showOlder}>
                Show older alerts
              </Button>
            )}
          </>
        )
      }
    </Loaded>
  );
}
