import { AHEAD, BINS, Bins } from "./bins.ts";
import { forEachNumber } from "./fields.ts";

/** A field of a device, received over a connection. */
export interface Series {
  /** Its three names, percent-encoded, with slashes between. */
  id: string;
  connection: string;
  device: string;
  field: string;
  bins: Bins;
  /** Time of the newest value, milliseconds since 1970. */
  at: number;
  value: number;
  /** Average milliseconds between two values. */
  interval: number;
}

/**
 * Maximum number of series. A further one replaces the series without a value in the window; if there are none, its
 * values are only counted.
 */
export const MOST_SERIES = 400;
const SHARE = 0.1;
/** Series that are further behind the newest one are silent: they do not lengthen the replay after an interruption. */
const LONGEST_LAG_MS = 300_000;

interface Impulse {
  Timestamp: string;
  Subject: string;
  Metadata: { ConnectionLookup: string };
  Payload: unknown;
}

/** The numeric fields of a stream within a window, reduced to a chart's resolution. */
export class History {
  /** Milliseconds of a bin. */
  readonly width: number;
  /** In order of appearance. */
  readonly series: Series[] = [];
  /** Messages added. */
  consumed = 0;
  /** Messages that are not valid JSON. */
  unreadable = 0;
  /** Ignored values of further series. */
  leftOut = 0;
  /** The newest measurement time, milliseconds since 1970; ignores clocks that are far ahead. */
  newest = 0;
  readonly #known = new Map<string, Map<string, Map<string, Series>>>();
  /** Time of measurement from which silent series are searched again. */
  #nextSearch = 0;

  /** @param seconds of the window */
  constructor(readonly seconds: number) {
    this.width = (seconds * 1000) / BINS;
  }

  /** Adds a message of the live stream. */
  add(text: string, now: number): void {
    this.consumed += 1;
    const impulse = parseImpulse(text);
    const at = impulse ? Date.parse(impulse.Timestamp) : Number.NaN;
    if (!impulse || Number.isNaN(at) || at < 0) {
      this.unreadable += 1;
      return;
    }
    const bin = Math.floor(at / this.width);
    if (bin > Math.floor(now / this.width) + AHEAD) {
      return; // A clock that is far ahead must not displace the values of other devices.
    }
    this.newest = Math.max(this.newest, at);
    const fields = this.#known.get(impulse.Metadata.ConnectionLookup)?.get(impulse.Subject);
    forEachNumber(impulse.Payload, (field, value) => {
      const series = fields?.get(field) ?? this.#find(impulse, field) ?? this.#add(impulse, field);
      if (series) {
        series.bins.put(bin, value);
        addValue(series, at, value);
      }
    });
  }

  /**
   * Returns the time of measurement from which messages can be missing after an interruption, milliseconds since 1970;
   * 0 without messages. Each device can send later than others, so it is the newest value of the slowest one.
   */
  findReplayStart(): number {
    const times = this.series.map(({ at }) => at).filter((at) => at >= this.newest - LONGEST_LAG_MS);
    return Math.min(this.newest, ...times);
  }

  #find({ Metadata, Subject }: Impulse, field: string): Series | undefined {
    return this.#known.get(Metadata.ConnectionLookup)?.get(Subject)?.get(field);
  }

  #add(impulse: Impulse, field: string): Series | undefined {
    if (this.series.length >= MOST_SERIES && !this.#removeSilent()) {
      this.leftOut += 1;
      return undefined;
    }
    const connection = impulse.Metadata.ConnectionLookup;
    const device = impulse.Subject;
    const id = [connection, device, field].map(encodeURIComponent).join("/");
    const made = { id, connection, device, field, bins: new Bins(), at: 0, value: Number.NaN, interval: 0 };
    const devices = this.#known.get(connection) ?? new Map<string, Map<string, Series>>();
    const fields = devices.get(device) ?? new Map<string, Series>();
    this.#known.set(connection, devices.set(device, fields.set(field, made)));
    this.series.push(made);
    return made;
  }

  /** Removes series without a value in the window, at most once per bin; returns whether it removed any. */
  #removeSilent(): boolean {
    if (this.newest < this.#nextSearch) {
      return false;
    }
    this.#nextSearch = this.newest + this.width;
    const isSilent = ({ at }: Series) => at < this.newest - this.seconds * 1000;
    const silent = this.series.filter(isSilent);
    for (const { connection, device, field } of silent) {
      const devices = this.#known.get(connection);
      const fields = devices?.get(device);
      fields?.delete(field);
      if (fields?.size === 0) {
        devices?.delete(device);
      }
    }
    this.series.splice(0, this.series.length, ...this.series.filter((each) => !isSilent(each)));
    return silent.length > 0;
  }
}

function addValue(series: Series, at: number, value: number): void {
  if (at < series.at) {
    return;
  }
  const passed = at - series.at;
  if (series.at > 0 && passed > 0) {
    series.interval = series.interval === 0 ? passed : series.interval * (1 - SHARE) + passed * SHARE;
  }
  series.at = at;
  series.value = value;
}

function parseImpulse(text: string): Impulse | undefined {
  try {
    const impulse = JSON.parse(text) as Partial<Impulse> | null;
    return typeof impulse?.Metadata?.ConnectionLookup === "string" ? (impulse as Impulse) : undefined;
  } catch {
    return undefined;
  }
}
