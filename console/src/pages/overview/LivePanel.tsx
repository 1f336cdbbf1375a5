import { useEffect, useReducer, useState } from "preact/hooks";
import type { Surface } from "@/api/catalog.ts";
import { api } from "@/api/index.ts";
import { fetchSurfaces } from "@/api/plant.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Select } from "@/components/Field.tsx";
import { Loading } from "@/components/Loading.tsx";
import { useResource } from "@/components/useResource.ts";
import { formatCount } from "@/format.ts";
import { Live, type Scope } from "@/live/live.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { chooseDefault, formatChoice, groupByField, parseChoice } from "./choice.ts";
import { Lane } from "./Lane.tsx";
import css from "./Live.module.css";
import { Picker } from "./Picker.tsx";
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
  const live = useLive(scope, seconds);
  const change = (part: Record<string, string | number | undefined>) =>
    navigate(buildHref("overview", [], { ...Object.fromEntries(query), ...part }), "replace");
  return (
    <Panel title="Live" actions={live && <StreamStatus live={live} />}>
      <div class={css.toolbar}>
        <ScopeSelect scope={scope} onChange={(chosen) => change({ ...chosen, fields: undefined })} />
        <fieldset class={css.windows} aria-label="Window">
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
        <Button kind="quiet" onClick={() => setPicking(!picking)}>
          {picking ? "Hide fields" : "Choose fields"}
        </Button>
      </div>
      {live && <StreamNotice live={live} />}
      {live && (
        <Charts
          live={live}
          picking={picking}
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
  asked: readonly string[] | undefined;
  onChange: (ids: readonly string[]) => void;
}

function Charts({ live, picking, asked, onChange }: ChartsProps) {
  const { history } = live;
  if (history.series.length === 0) {
    return <Nothing live={live} />;
  }
  const chosen = asked ?? chooseDefault(history.series);
  const groups = groupByField(history.series, chosen);
  return (
    <div class={css.columns}>
      {picking && <Picker series={history.series} chosen={chosen} onChange={onChange} />}
      <div class={css.lanes}>
        {groups.map((group, index) => (
          <Lane key={group.field} live={live} group={group} last={index === groups.length - 1} />
        ))}
        {groups.length === 0 && <Empty title="No field is selected">Select one or more in the list of fields.</Empty>}
        <p class={css.note}>
          {formatCount(history.consumed)} messages
          {history.unreadable > 0 && `, ${formatCount(history.unreadable)} of them unreadable`}
          {history.leftOut > 0 && `; ${formatCount(history.leftOut)} values of further fields omitted`}
        </p>
      </div>
    </div>
  );
}

/** The reason of an empty chart. */
function Nothing({ live: { history, state } }: { live: Live }) {
  if (history.consumed > 0) {
    return (
      <Empty title="No numbers yet">{formatCount(history.consumed)} messages arrived, without a numeric field.</Empty>
    );
  }
  if (state.kind === "open") {
    return (
      <Empty title="No messages yet">
        Messages appear here on arrival. Choose a longer window or another source, or send some with POST
        /oi-api/telemetry.
      </Empty>
    );
  }
  return state.kind === "ended" ? null : <Loading label="Opening the live stream" rows={6} />;
}

function ScopeSelect({ scope, onChange }: { scope: Scope; onChange: (scope: Scope) => void }) {
  const readable = useHasRights("Workspace.Catalog.Read");
  const { data } = useResource<Surface[]>(async (signal) => (readable ? fetchSurfaces(api, signal) : []), [readable]);
  const value = scope.connection ? `connection ${scope.connection}` : scope.surface ? `surface ${scope.surface}` : "";
  const options = [
    { value: "", label: "All connections" },
    ...(data ?? []).map(({ id, name }) => ({ value: `surface ${id}`, label: `Surface: ${name}` })),
  ];
  if (!options.some((option) => option.value === value)) {
    options.push({ value, label: scope.connection ? `Connection: ${scope.connection}` : `Surface: ${scope.surface}` });
  }
  return (
    <div class={css.source}>
      <Select
        label="Source"
        hideLabel
        value={value}
        options={options}
        onChange={(chosen) =>
          onChange(
            chosen.startsWith("surface ")
              ? { connection: "", surface: chosen.slice(8) }
              : { connection: chosen.slice(11), surface: "" },
          )
        }
      />
    </div>
  );
}

/** Opens a stream for a scope and a window; reopens it if these change. */
function useLive({ connection, surface }: Scope, seconds: number): Live | undefined {
  const [live, setLive] = useState<Live>();
  const [, redraw] = useReducer<number, undefined>((turn) => turn + 1, 0);
  useEffect(() => {
    const made = new Live(api, { connection, surface }, seconds);
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
