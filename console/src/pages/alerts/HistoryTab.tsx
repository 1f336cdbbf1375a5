import { useState } from "preact/hooks";
import { type Alert, fetchAlerts } from "@/api/alerts.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import { Panel } from "@/shell/Page.tsx";
import { AlertTable } from "./AlertTable.tsx";

const PAGE = 200;

/** All alerts of the last 90 days, newest first, page by page. */
export function HistoryTab() {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [earlier, setEarlier] = useState<readonly Alert[]>([]);
  const cursor = cursors.at(-1);
  const page = useResource((signal) => fetchAlerts(api, { limit: PAGE, cursor }, signal), [cursor]);
  const restart = () => {
    setEarlier([]);
    setCursors([]);
    page.reload();
  };
  return (
    <Loaded resource={page} rows={6}>
      {(shown) => {
        const alerts = [...earlier, ...shown.alerts.filter((alert) => earlier.every(({ id }) => id !== alert.id))];
        const next = shown.cursor;
        return (
          <Panel>
            <AlertTable
              label="History of alerts"
              alerts={alerts}
              withEnd
              empty={{ title: "No alerts yet", text: "Every alert of the last 90 days is listed here." }}
              onChanged={restart}
            />
            {next !== undefined && next !== cursor && (
              <Button
                busy={page.loading}
                onClick={() => {
                  setEarlier(alerts);
                  setCursors([...cursors, next]);
                }}
              >
                Show older alerts
              </Button>
            )}
          </Panel>
        );
      }}
    </Loaded>
  );
}
