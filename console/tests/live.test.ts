import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AHEAD, BINS, Bins } from "../src/live/bins.ts";
import { forEachNumber } from "../src/live/fields.ts";
import { Frames } from "../src/live/frames.ts";
import { History, MOST_SERIES } from "../src/live/history.ts";
import { View } from "../src/live/view.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

function impulse(at: number, payload: unknown, device = "d1", connection = "rig"): string {
  const Metadata = { ConnectionLookup: connection, SurfaceLookups: [] };
  return JSON.stringify({
    ID: "x",
    Timestamp: new Date(at).toISOString(),
    Subject: device,
    Metadata,
    Payload: payload,
  });
}

function drawn(history: History, now: number): (number | null)[] {
  const view = new View(history.series, history.width);
  view.fill(now);
  return (view.values[0] ?? []).filter((value) => value !== undefined);
}

test("numbers of a payload are found with dotted names; texts, booleans and arrays are passed over", () => {
  const found: [string, number][] = [];
  const payload = { a: 1, b: "2", c: true, d: { e: 3.5, f: { g: -4 } }, h: [5], i: null };
  forEachNumber(payload, (name, value) => found.push([name, value]));
  expect(found).toEqual([
    ["a", 1],
    ["d.e", 3.5],
    ["d.f.g", -4],
  ]);
});

test("however deep a payload nests, the walk ends", () => {
  const deep = JSON.parse(`${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`);
  expect(() => forEachNumber(deep, () => undefined)).not.toThrow();
});

test("the lowest and highest value of each bin are kept, in whatever order and however often values come", () => {
  const values = Array.from({ length: 5000 }, (_, index) => ({ bin: 7000 + (index % 900), value: Math.sin(index) }));
  const once = new Bins();
  const mixed = new Bins();
  for (const { bin, value } of values) {
    once.put(bin, value);
  }
  for (const { bin, value } of [...values, ...values].sort((left, right) => left.value - right.value)) {
    mixed.put(bin, value);
  }
  const all = (bins: Bins) => {
    const found: number[][] = [];
    bins.each(6000, 9000, (...each) => found.push(each));
    return found;
  };
  expect(all(mixed)).toEqual(all(once));
  for (const [bin, low, high] of all(once)) {
    const own = values.filter((each) => each.bin === bin).map((each) => each.value);
    expect([low, high]).toEqual([Math.min(...own), Math.max(...own)]);
  }
});

test("what is older than the window makes room", () => {
  const bins = new Bins();
  bins.put(10, 1);
  bins.put(10 + BINS + AHEAD + 1, 2);
  bins.put(10, 3);
  const found: number[] = [];
  bins.each(0, 5000, (bin) => found.push(bin));
  expect(found).toEqual([10 + BINS + AHEAD + 1]);
});

test("a thousand messages a second are all taken in as they come, in bounded room, and drawn at a frame's pace", () => {
  const history = new History(60);
  const draw = vi.fn();
  const frames = new Frames(draw);
  for (let sent = 0; sent < 10_000; sent += 1) {
    const now = NOW + sent;
    history.add(impulse(now, { pressure: sent, motor: { rpm: -sent } }, `d${sent % 5}`), now);
    frames.request();
    expect(history.consumed).toBe(sent + 1);
    vi.advanceTimersByTime(1);
  }
  vi.advanceTimersByTime(1000);
  expect(history.series).toHaveLength(10);
  expect(history.newest).toBe(NOW + 9999);
  expect(draw.mock.calls.length).toBeGreaterThan(50);
  expect(draw.mock.calls.length).toBeLessThanOrEqual(103);
  const seen = drawn(history, NOW + 10_000).filter((value) => value !== null);
  expect(seen.length).toBeLessThanOrEqual(2 * BINS);
  expect(Math.min(...seen)).toBe(0);
  expect(Math.max(...seen)).toBe(9995);
});

test("a silence much longer than usual is a gap, the usual pause between two values is none", () => {
  const history = new History(300);
  for (let at = 0; at <= 60_000; at += 5000) {
    history.add(impulse(NOW + at, { v: 1 }), NOW + at);
  }
  expect(drawn(history, NOW + 60_000)).not.toContain(null);
  history.add(impulse(NOW + 160_000, { v: 1 }), NOW + 160_000);
  expect(drawn(history, NOW + 160_000).filter((value) => value === null)).toHaveLength(1);
});

test("a clock that is far ahead pushes nothing out, and what cannot be read is counted", () => {
  const history = new History(60);
  history.add(impulse(NOW, { v: 1 }), NOW);
  history.add(impulse(NOW + 86_400_000, { v: 2 }), NOW);
  history.add("{", NOW);
  history.add("null", NOW);
  history.add('{"Timestamp":"never","Metadata":{"ConnectionLookup":"c"},"Payload":{}}', NOW);
  expect(drawn(history, NOW)).toEqual([1]);
  expect([history.consumed, history.unreadable, history.newest]).toEqual([5, 3, NOW]);
});

test("after an interruption, the replay begins at the newest value of the slowest device, except of silent ones", () => {
  const history = new History(900);
  expect(history.findReplayStart()).toBe(0);
  history.add(impulse(NOW - 600_000, { v: 1 }, "silent"), NOW);
  history.add(impulse(NOW, { v: 1 }, "fast"), NOW);
  expect(history.findReplayStart()).toBe(NOW);
  history.add(impulse(NOW - 60_000, { v: 1 }, "batches"), NOW);
  expect(history.findReplayStart()).toBe(NOW - 60_000);
  history.add(impulse(NOW - 1000, { v: 1 }, "batches"), NOW);
  expect(history.findReplayStart()).toBe(NOW - 1000);
});

test("fields beyond the most are left out and counted", () => {
  const history = new History(60);
  const payload = Object.fromEntries(Array.from({ length: MOST_SERIES + 7 }, (_, index) => [`f${index}`, index]));
  history.add(impulse(NOW, payload), NOW);
  expect([history.series.length, history.leftOut]).toEqual([MOST_SERIES, 7]);
});

test("a new device replaces devices that were silent for the whole window", () => {
  const history = new History(60);
  for (let number = 1; number < MOST_SERIES; number += 1) {
    history.add(impulse(NOW, { value: 1 }, `d${number}`), NOW);
  }
  history.add(impulse(NOW + 60_000, { value: 1 }, "d0"), NOW + 60_000);
  history.add(impulse(NOW + 60_000, { value: 2 }, "new"), NOW + 60_000);
  expect([history.series.length, history.leftOut]).toEqual([MOST_SERIES, 1]);
  history.add(impulse(NOW + 61_000, { value: 3 }, "new"), NOW + 61_000);
  expect(history.series.map(({ device, value }) => [device, value])).toEqual([
    ["d0", 1],
    ["new", 3],
  ]);
  history.add(impulse(NOW + 61_000, { value: 4 }, "d1"), NOW + 61_000);
  expect(history.series.at(-1)).toMatchObject({ device: "d1", value: 4 });
});

test("names of the object's own prototype are fields like others", () => {
  const history = new History(60);
  history.add(impulse(NOW, JSON.parse('{"__proto__": 1, "constructor": 2}'), "toString"), NOW);
  expect(history.series.map((each) => each.field)).toEqual(["__proto__", "constructor"]);
});
