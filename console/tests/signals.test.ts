import { expect, test } from "vitest";
import type { ProposedSignal, Signal } from "../src/api/connections.ts";
import { computeBand, describeLimits } from "../src/components/chartLimits.ts";
import { combineSignals, toFieldName } from "../src/components/signals.ts";
import {
  checkSignals,
  listNewProposals,
  NEW_SIGNAL,
  type SignalDraft,
  toProposedDraft,
  toSignal,
} from "../src/pages/connections/signalDrafts.ts";
import { findColumnSignal } from "../src/pages/queries/run/columnSignals.ts";

const TEMPERATURE: Signal = {
  name: "temperature",
  pointer: "/temperature",
  type: "real",
  unit: "°C",
  description: null,
  min: 4.2,
  max: 8.8,
};
const DRAFT: SignalDraft = { ...NEW_SIGNAL, name: "speed", pointer: "/motor/speed", unit: "1/min" };
const PROPOSAL: ProposedSignal = { name: "speed", pointer: "/speed", type: "long", share: 0.5, min: 1, max: 9 };

function listMessages(drafts: readonly SignalDraft[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(checkSignals(drafts)).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
}

test("signals have unique names and pointers, and limits that are numbers in their order", () => {
  expect(listMessages([DRAFT])).toEqual({});
  expect(listMessages([DRAFT, DRAFT])).toEqual({
    "signals[1].name": "belongs to another signal",
    "signals[1].pointer": "belongs to another signal",
  });
  expect(Object.keys(listMessages([{ ...DRAFT, name: "", pointer: "speed", min: "x", max: "1e999" }]))).toEqual([
    "signals[0].name",
    "signals[0].pointer",
    "signals[0].min",
    "signals[0].max",
  ]);
  expect(listMessages([{ ...DRAFT, min: "2", max: "1" }])).toEqual({ "signals[0].min": "must not be above max" });
});

test("only numbers have limits, and empty fields are null", () => {
  expect(toSignal({ ...DRAFT, min: "-1.5" })).toMatchObject({ unit: "1/min", description: null, min: -1.5, max: null });
  expect(toSignal({ ...DRAFT, type: "string", min: "1", max: "x" })).toMatchObject({ min: null, max: null });
});

test("proposals leave out declared fields, and take observed values as limits on request only", () => {
  expect(listNewProposals([PROPOSAL], [])).toEqual([PROPOSAL]);
  expect(listNewProposals([PROPOSAL], [DRAFT])).toEqual([]);
  expect(listNewProposals([PROPOSAL], [{ ...DRAFT, name: "n", pointer: "/speed" }])).toEqual([]);
  expect(toProposedDraft(PROPOSAL, true)).toMatchObject({ type: "long", min: "1", max: "9" });
  expect(toProposedDraft(PROPOSAL, false)).toMatchObject({ name: "speed", pointer: "/speed", min: "", max: "" });
});

test("a column contains the signal of its name, also after an aggregation that keeps the unit", () => {
  const named = ["temperature", "avgTemperature", "max_temperature", "maximumTemperature", "p95Temperature"];
  expect(named.map((name) => findColumnSignal(name, [TEMPERATURE])?.unit)).toEqual(named.map(() => "°C"));
  expect(findColumnSignal("countTemperature", [TEMPERATURE])).toBeUndefined();
  expect(findColumnSignal("readings", [TEMPERATURE])).toBeUndefined();
});

test("signals of one name in different units give a column no unit, and different limits no limits", () => {
  expect(findColumnSignal("temperature", [TEMPERATURE, { ...TEMPERATURE, unit: "K" }])).toBeUndefined();
  const wider = { ...TEMPERATURE, max: 12 };
  expect(findColumnSignal("temperature", [TEMPERATURE, wider])).toMatchObject({ unit: "°C", min: null, max: null });
});

test("a chart has the unit and the limits that all its lines share", () => {
  expect(combineSignals([TEMPERATURE, TEMPERATURE])).toEqual({ unit: "°C", limits: { min: 4.2, max: 8.8 } });
  expect(combineSignals([TEMPERATURE, { ...TEMPERATURE, min: 0 }]).limits).toEqual({ min: null, max: null });
  for (const lines of [[], [undefined], [TEMPERATURE, undefined], [TEMPERATURE, { ...TEMPERATURE, unit: "K" }]]) {
    expect(combineSignals(lines)).toEqual({ unit: "", limits: { min: null, max: null } });
  }
});

test("the pointer of a signal is a dotted name in the live stream", () => {
  expect(toFieldName("/motor/speed")).toBe("motor.speed");
  expect(toFieldName("/a~1b/c~0d/~01")).toBe("a/b.c~d.~1");
});

test("the band of the limits stays within the plot", () => {
  const toPixel = (value: number) => 100 - value * 10;
  expect(computeBand({ min: 2, max: 4 }, toPixel, 0, 100)).toEqual({ from: 60, to: 80 });
  expect(computeBand({ min: null, max: 4 }, toPixel, 0, 100)).toEqual({ from: 60, to: 100 });
  expect(computeBand({ min: -5, max: 50 }, toPixel, 0, 100)).toEqual({ from: 0, to: 100 });
  expect(computeBand({ min: 20, max: 30 }, toPixel, 0, 100)).toBeUndefined();
  expect(computeBand({ min: null, max: null }, toPixel, 0, 100)).toBeUndefined();
  expect(computeBand({ min: 2, max: 4 }, () => Number.NaN, 0, 100)).toBeUndefined();
});

test("limits are described with their unit", () => {
  expect(describeLimits({ min: 4.2, max: 8.8 }, "°C")).toBe("4.2 to 8.8 °C");
  expect(describeLimits({ min: 1, max: null }, "")).toBe("at least 1");
  expect(describeLimits({ min: null, max: 0.00145 }, "")).toBe("at most 0.00145");
  expect(describeLimits({ min: null, max: 2 }, "bar")).toBe("at most 2 bar");
  expect(describeLimits({ min: null, max: null }, "bar")).toBe("");
});
