import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import type { Alert } from "../src/api/alerts.ts";
import { Chart } from "../src/components/Chart.tsx";
import { ChartTable } from "../src/components/ChartTable.tsx";
import { formatMark, listSteps, measureWidth } from "../src/components/chartValues.ts";
import { formatBytes, formatCount, formatQuantity, formatReading } from "../src/format.ts";
import { findIsolated } from "../src/live/view.ts";
import { AlertDialog } from "../src/pages/alerts/AlertDialog.tsx";
import { AlertTable } from "../src/pages/alerts/AlertTable.tsx";
import { adviseOnTruncation } from "../src/pages/queries/run/queryCall.ts";

const made: { series: { label: string }[] }[] = [];

// Drawing needs a canvas; this stands at the library's door and keeps what it is asked to draw.
vi.mock("uplot", () => ({
  default: class {
    width = 600;
    over = document.createElement("div");
    constructor(options: { series: { label: string }[] }) {
      made.push(options);
    }
    setData() {}
    setSize() {}
    destroy() {}
  },
}));

/** Reports each observed box as on the screen, or as outside it, at once; returns the observed boxes. */
function placeBoxes(isIntersecting: boolean): Element[] {
  const observed: Element[] = [];
  class Observer {
    readonly #report: (entries: { isIntersecting: boolean }[]) => void;
    constructor(report: (entries: { isIntersecting: boolean }[]) => void) {
      this.#report = report;
    }
    observe(box: Element) {
      observed.push(box);
      this.#report([{ isIntersecting }]);
    }
    disconnect() {}
  }
  vi.stubGlobal("IntersectionObserver", Observer);
  return observed;
}

test("figures of any size are short, and nothing is minus nothing", () => {
  expect([1e300, -1e300, 1.25e15, 999_999].map(formatReading)).toEqual(["1e+300", "-1e+300", "1.25e+15", "999,999"]);
  expect([0, -0, 0.5, 1e-9].map(formatReading)).toEqual(["0", "0", "0.5", "1e-9"]);
  expect([0.0014, 0.123456, 8.123456].map(formatReading)).toEqual(["0.0014", "0.1235", "8.123"]);
  expect(formatCount(-0)).toBe("0");
});

test("a size that one decimal would round to 1000.0 has the next unit", () => {
  const sizes = [999, 1000, 999_949, 999_950, 999_999_999, 1.5e15];
  expect(sizes.map(formatBytes)).toEqual(["999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1.0 GB", "1500.0 TB"]);
});

const ALERT: Alert = {
  id: "a",
  rule: "level",
  name: "Level",
  labels: {},
  state: "firing",
  severity: "warning",
  surface: "hall",
  value: 5.0004,
  startedAt: "2026-01-05T08:00:00Z",
  firedAt: "2026-01-05T08:00:00Z",
  resolvedAt: null,
  acknowledgedBy: null,
  acknowledgedAt: null,
  comment: null,
};
const IGNORE = () => undefined;

test.each([
  [
    "the list of alerts",
    <AlertTable label="Alerts" alerts={[ALERT]} empty={{ title: "", text: "" }} onChanged={IGNORE} />,
  ],
  ["the dialog of an alert", <AlertDialog alert={ALERT} onClose={IGNORE} onChanged={IGNORE} />],
  [
    "the table of a chart",
    <ChartTable label="Values" times={[0]} series={[{ label: "level", values: [5.0004] }]} unit="" />,
  ],
])("%s shows all digits of a value", async (_, shown) => {
  HTMLDialogElement.prototype.showModal ??= () => undefined;
  const box = document.body.appendChild(document.createElement("div"));
  await act(() => render(shown, box));
  expect(box.textContent).toContain("5.0004");
  await act(() => render(null, box));
  box.remove();
});

test("one thing is counted in the singular", () => {
  expect([0, 1, 2, 1000].map((count) => formatQuantity(count, "amendment"))).toEqual([
    "0 amendments",
    "1 amendment",
    "2 amendments",
    "1,000 amendments",
  ]);
});

test("an axis has marks for values of any size, with room for them", () => {
  const few = (lowest: number, highest: number) => listSteps(lowest, highest, 240, 50).filter((at) => at * 2 < highest);
  expect(few(-1e300, 1e300).length).toBeGreaterThan(0);
  expect(few(0, 100)).toContain(20);
  expect(listSteps(1e300, 1e300, 240, 50)).toEqual([]);
  expect(formatMark(-1e300, 1e299)).toBe("-1e+300");
  expect(measureWidth(["1,234,567,890 mbar"], 64)).toBeGreaterThan(100);
});

test.each([
  [0.0002, [5.0002, 5.0004], ["5.0002", "5.0004"]],
  [0.0005, [-0.0005, 1e-19, 0.001, 0.0015], ["-5e-4", "0", "0.001", "0.0015"]],
  [0.1, [0.1, 0.1 + 0.2], ["0.1", "0.3"]],
  [20, [1_767_600_000, 1_767_600_020], ["1.7676e+9", "1.76760002e+9"]],
  [1000, [0, 12_000], ["0", "12,000"]],
])("marks with a distance of %d are distinguishable", (step, values, expected) => {
  expect(values.map((value) => formatMark(value, step))).toEqual(expected);
});

test("a value that no line leads to is drawn as a point", () => {
  expect(findIsolated([undefined, 5, undefined])).toEqual([1]);
  expect(findIsolated([1, undefined, 2, null, 3, undefined])).toEqual([4]);
  expect(findIsolated([1, undefined, 2])).toEqual([]);
});

test("a line's name may hold ends of lines", async () => {
  placeBoxes(true);
  const box = document.body.appendChild(document.createElement("div"));
  const lines = ["a\nb", "c"].map((label) => ({ label, values: [1, 2] }));
  render(<Chart label="x" times={[1, 2]} series={lines} />, box);
  await vi.waitFor(() => expect(made.at(-1)?.series.map(({ label }) => label)).toEqual([undefined, "a b", "c"]));
});

test("a chart outside the screen is not created", async () => {
  const outside = placeBoxes(false);
  const before = made.length;
  const box = document.body.appendChild(document.createElement("div"));
  render(<Chart label="outside" times={[1, 2]} series={[{ label: "outside", values: [1, 2] }]} />, box);
  await vi.waitFor(() => expect(outside).toHaveLength(1));
  placeBoxes(true);
  const shown = document.body.appendChild(document.createElement("div"));
  render(<Chart label="inside" times={[1, 2]} series={[{ label: "inside", values: [1, 2] }]} />, shown);
  await vi.waitFor(() => expect(made.length).toBeGreaterThan(before));
  expect(made.slice(before).flatMap(({ series }) => series.map(({ label }) => label))).not.toContain("outside");
});

test("who has the most rows there can be is told to narrow the query", () => {
  expect(adviseOnTruncation(10_000)).not.toContain("Raise it");
  expect(adviseOnTruncation(1000)).toContain("Raise it");
});
