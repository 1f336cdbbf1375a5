import { AHEAD, BINS, Bins } from "./bins.ts";
import { forEachNumber } from "./fields.ts";

/** A field of a device, as it came over a connection. */
export interface Series {
  /** Its three names, percent-encoded, with slashes between. */
  id: string;
  connection: string;
  device: string;
  field: string;
  bins: Bins;
  /** When its newest value was measured, milliseconds since 1970. */
  at: number;
  value: number;
  /** Milliseconds between two values, on average. */
  interval: number;
}

/** Series beyond these are counted and left out. */
export const MOST_SERIES = 400;
const SHARE = 0.1;

interface Impulse {
  Timestamp: string;
  Subject: string;
  Metadata: { ConnectionLookup: string };
  Payload: unknown;
}

/** What a stream brought within a window: every numeric field, thinned out to what a chart can show. */
export class History {
  /** Milliseconds of a bin. */
  readonly width: number;
  /** In order of appearance. */
  readonly series: Series[] = [];
  /** Messages taken in. */
  consumed = 0;
  /** Messages that could not be read. */
  unreadable = 0;
  /** Values of series beyond the most. */
  leftOut = 0;
  /** The newest instant of measurement, milliseconds since 1970; of clocks that are right. */
  newest = 0;
  readonly #known = new Map<string, Map<string, Map<string, Series>>>();

  /** @param seconds of the window */
  constructor(readonly seconds: number) {
    this.width = (seconds * 1000) / BINS;
  }

  /** Takes in a message of the live stream. */
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
      return; // A clock that is far ahead must not push out what others measured.
    }
    this.newest = Math.max(this.newest, at);
    const fields = this.#of(impulse.Metadata.ConnectionLookup, impulse.Subject);
    forEachNumber(impulse.Payload, (field, value) => {
      const series = fields.get(field) ?? this.#add(fields, impulse, field);
      if (series) {
        series.bins.put(bin, value);
        addValue(series, at, value);
      }
    });
  }

  #of(connection: string, device: string): Map<string, Series> {
    const devices = this.#known.get(connection) ?? new Map<string, Map<string, Series>>();
    this.#known.set(connection, devices);
    const fields = devices.get(device) ?? new Map<string, Series>();
    devices.set(device, fields);
    return fields;
  }

  #add(fields: Map<string, Series>, impulse: Impulse, field: string): Series | undefined {
    if (this.series.length >= MOST_SERIES) {
      this.leftOut += 1;
      return undefined;
    }
    const connection = impulse.Metadata.ConnectionLookup;
    const device = impulse.Subject;
    const id = [connection, device, field].map(encodeURIComponent).join("/");
    const made = { id, connection, device, field, bins: new Bins(), at: 0, value: Number.NaN, interval: 0 };
    fields.set(field, made);
    this.series.push(made);
    return made;
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
