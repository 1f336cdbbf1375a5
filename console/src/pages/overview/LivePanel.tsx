import { useLayoutEffect, useReducer, useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loading } from "@/components/Loading.tsx";
import { combineSignals, toFieldName, useSignals } from "@/components/signals.ts";
import { formatCount, formatQuantity } from "@/format.ts";
import { MOST_SERIES } from "@/live/history.ts";
import { Live, type Scope } from "@/live/live.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { session } from "@/session/index.ts";
import { Panel } from "@/shell/Page.tsx";
import { chooseDefault, formatChoice, type Group, groupByField, parseChoice } from "./choice.ts";
import { Lane } from "./Lane.tsx";
import css from "./Live.module.css";
import { LiveTable } from "./LiveTable.tsx";
import { Picker } from "./Picker.tsx";
import { SourceSelect } from "./SourceSelect.tsx";
import { StreamNotice, StreamStatus } from "./StreamStatus.tsx";

const WINDOWS = [
  { seconds: 60, label: "1 min" },
  { seconds: 300, label: "5 min" },
  { seconds: 900, label: "15 min" },
  { seconds: 3600, label: "1 h" },
] as const;

/** The live stream as a chart; the address contains its settings. */
export function LivePanel({ query }: { query: URLSearchParams }) {
  const scope = { connection: query.get("connection") ?? "", surface: query.get("surface") ?? "" };
  const seconds = WINDOWS.find((each) => String(each.seconds) === query.get("window"))?.seconds ?? 300;
  const [picking, setPicking] = useState(true);
  const [table, setTable] = useState(false);
  const live = useLive(scope, seconds);
  const change = (part: Record<string, string | number | undefined>) =>
    navigate(buildHref("overview", [], { ...Object.fromEntries(query), ...part }), "replace");
  return (
    <Panel title="Live data from the plant" actions={live && <StreamStatus live={live} />}>
      <div class={css.toolbar}>
        <SourceSelect scope={scope} onChange={(chosen) => change({ ...chosen, fields: undefined })} />
        <fieldset class={css.windows} aria-label="Time window">
          {WINDOWS.map((each) => (
            <button
              key={each.seconds}
              type="button"
              aria-pressed={each.seconds === seconds}
              onClick={() => change({ window: each.seconds })}
            >
              {each.label}
            </button>
          ))}
        </fieldset>
        {live && (
          <Button onClick={() => live.pause(live.pausedAt === undefined)}>
            {live.pausedAt === undefined ? "Pause" : "Resume"}
          </Button>
        )}
        {live?.zoom && <Button onClick={() => live.zoomTo(undefined)}>Reset zoom</Button>}
        <Button kind="quiet" onClick={() => setPicking(!picking)}>
          {picking ? "Hide fields" : "Choose fields"}
        </Button>
        <Button kind="quiet" icon="table" onClick={() => setTable(!table)}>
          {table ? "Show charts" : "Show a table"}
        </Button>
      </div>
      {live && <StreamNotice live={live} />}
      {live && (
        <Charts
          live={live}
          picking={picking}
          table={table}
          asked={parseChoice(query)}
          onChange={(ids) => change({ fields: formatChoice(ids) })}
        />
      )}
    </Panel>
  );
}

interface ChartsProps {
  live: Live;
  picking: boolean;
  /** Shows the values as a table instead of charts. */
  table: boolean;
  asked: readonly string[] | undefined;
  onChange: (ids: readonly string[]) => void;
}

function Charts({ live, picking, table, asked, onChange }: ChartsProps) {
  const { history } = live;
  const chosen = asked ?? chooseDefault(history.series);
  const groups = groupByField(history.series, chosen);
  const signals = useSignals(groups.flatMap((group) => group.series.map(({ connection }) => connection)));
  if (history.series.length === 0) {
    return <Nothing live={live} />;
  }
  const findScale = ({ field, series }: Group) =>
    combineSignals(
      series.map(({ connection }) => signals.get(connection)?.find(({ pointer }) => toFieldName(pointer) === field)),
    );
  return (
    <div class={css.columns}>
      {picking && <Picker series={history.series} chosen={chosen} onChange={onChange} />}
      <div class={css.lanes}>
        {table && groups.length > 0 ? (
          <LiveTable live={live} series={groups.flatMap(({ series }) => series)} />
        ) : (
          groups.map((group) => <Lane key={group.field} live={live} group={group} scale={findScale(group)} />)
        )}
        {groups.length === 0 && <Empty title="No field is selected">Select one or more in the list of fields.</Empty>}
        <p class={css.note}>
          {formatQuantity(history.consumed, "message")}
          {history.unreadable > 0 && `, ${formatCount(history.unreadable)} of them unreadable`}
          {history.leftOut > 0 &&
            `; at most ${MOST_SERIES} fields are read at once; ${formatQuantity(history.leftOut, "value")} of other fields ignored`}
        </p>
      </div>
    </div>
  );
}

/** The reason of an empty chart. */
function Nothing({ live }: { live: Live }) {
  const { history, state } = live;
  if (history.consumed > 0) {
    return (
      <Empty title="No numbers yet">
        {formatQuantity(history.consumed, "message")} arrived, without a numeric field.
      </Empty>
    );
  }
  if (live.isReplaying()) {
    return <Loading label="Reading past messages" rows={6} />;
  }
  if (state.kind === "open") {
    return (
      <Empty title="No data yet">
        Messages appear here on arrival. Choose a longer window or another source, or send some with POST
        /oi-api/telemetry.
      </Empty>
    );
  }
  return state.kind === "ended" ? null : <Loading label="Opening the live stream" rows={6} />;
}

/** Opens a stream for a scope and a window; reopens it if these change. */
function useLive({ connection, surface }: Scope, seconds: number): Live | undefined {
  const [live, setLive] = useState<Live>();
  const [, redraw] = useReducer<number, undefined>((turn) => turn + 1, 0);
  // Before the browser paints, so that a button for the new stream does not act on the old one.
  useLayoutEffect(() => {
    const made = new Live(api, { connection, surface }, seconds, () => session.now().getTime());
    const end = made.subscribe(() => redraw(undefined));
    setLive(made);
    made.start();
    return () => {
      end();
      made.stop();
    };
  }, [connection, surface, seconds]);
  return live;
}
