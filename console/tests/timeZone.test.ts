import { h, render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, describe, expect, test, vi } from "vitest";
import { DataTable } from "../src/components/DataTable.tsx";
import { DateField } from "../src/components/DateField.tsx";
import { fromDateField, INCOMPLETE, toDateField } from "../src/components/dateFields.ts";
import { formatTime } from "../src/format.ts";
import { buildAdHocCall, buildWarmCall } from "../src/pages/queries/run/queryCall.ts";
import { createLastDay } from "../src/pages/queries/run/timeRanges.ts";
import { PAGES } from "../src/pages.ts";
import {
  describeZone,
  formatOffset,
  getZone,
  setZoneArea,
  subscribeToZone,
  toggleZone,
} from "../src/shell/timeZone.ts";
import { ZoneButton } from "../src/shell/ZoneButton.tsx";

const INSTANT = "2026-03-01T10:30:05.250Z";

function setMachineZone(timeZone: string): void {
  const options = { timeZone } as Intl.ResolvedDateTimeFormatOptions;
  vi.spyOn(Intl.DateTimeFormat.prototype, "resolvedOptions").mockReturnValue(options);
}

afterEach(() => {
  vi.restoreAllMocks();
  localStorage.clear();
  setZoneArea("plant");
});

/** Moves the reader's zone one hour ahead of UTC. */
function setLocalHours(): void {
  vi.spyOn(Date.prototype, "getHours").mockImplementation(function (this: Date) {
    return this.getUTCHours() + 1;
  });
}

describe("the zone of a page", () => {
  test("the audit log begins in UTC and other pages in the reader's zone; each keeps its own choice", () => {
    expect(getZone()).toBe("local");
    setZoneArea("audit");
    expect(getZone()).toBe("utc");
    toggleZone();
    expect(getZone()).toBe("local");
    setZoneArea("plant");
    toggleZone();
    expect(getZone()).toBe("utc");
    setZoneArea("audit");
    expect(getZone()).toBe("local");
  });

  test("the pages of the audit log belong to its area", () => {
    const inUtc = PAGES.filter((page) => page.zoneArea === "audit").map(({ path }) => path);
    expect(inUtc).toEqual(["audit", "scopes", "signatures"]);
  });

  test("a switch calls the listeners until they unsubscribe", () => {
    let calls = 0;
    const stop = subscribeToZone(() => {
      calls += 1;
    });
    toggleZone();
    stop();
    toggleZone();
    expect(calls).toBe(1);
  });

  test("a switch in another tab calls the listeners of pages with the same choice", () => {
    if (getZone() === "utc") toggleZone();
    let calls = 0;
    const stop = subscribeToZone(() => {
      calls += 1;
    });
    const switchElsewhere = (name: string) => {
      localStorage.setItem(name, "utc");
      window.dispatchEvent(new StorageEvent("storage", { key: name, newValue: "utc" }));
    };
    switchElsewhere("workspace-console-audit-zone");
    expect([calls, getZone()]).toEqual([0, "local"]);
    switchElsewhere("workspace-console-zone");
    expect([calls, getZone()]).toEqual([1, "utc"]);
    stop();
  });

  test("its name contains the offset from UTC", () => {
    expect([60, -210, 0].map(formatOffset)).toEqual(["UTC+1", "UTC-3:30", "UTC"]);
    expect(describeZone("utc", new Date())).toBe("UTC");
    setMachineZone("Europe/Berlin");
    expect(describeZone("local", new Date())).toMatch(/^Europe\/Berlin \(UTC/);
  });

  test("is offered for a switch only on a machine in another zone than UTC", () => {
    const root = document.createElement("div");
    const showIn = (zone: string) => {
      setMachineZone(zone);
      render(null, root);
      render(h(ZoneButton, {}), root);
      return root.querySelector("button");
    };
    expect(showIn("Europe/Berlin")).not.toBeNull();
    expect(showIn("UTC")).toBeNull();
    expect(root.textContent).toBe("Times in UTC");
    render(null, root);
  });
});

describe("times in a zone", () => {
  test("are formatted in UTC or in the reader's zone", () => {
    expect(formatTime(INSTANT, false, "utc")).toBe("2026-03-01 10:30:05");
    expect(formatTime(INSTANT, true, "utc")).toBe("2026-03-01 10:30:05.250");
    const local = formatTime(INSTANT, true, "local");
    expect(new Date(local.replace(" ", "T")).toISOString()).toBe(INSTANT);
    expect(formatTime("no time")).toBe("no time");
  });

  test("are entered in a field whose label names the offset, also if an address contains no valid time", () => {
    if (getZone() === "utc") toggleZone();
    const root = document.createElement("div");
    render(h(DateField, { label: "From", value: "garbage", onInput: () => undefined }), root);
    expect(root.querySelector("label")?.textContent).toMatch(/^From \(UTC([+-]\d+(:\d\d)?)?\)$/);
    render(null, root);
  });

  test("are entered in the same zone; text that is no time becomes no time", () => {
    expect(fromDateField("2026-03-01T10:30", "utc")).toBe("2026-03-01T10:30:00.000Z");
    expect(fromDateField("2026-03-01T10:30", "local")).toBe(new Date(2026, 2, 1, 10, 30).toISOString());
    for (const zone of ["utc", "local"] as const) {
      expect(toDateField(fromDateField("2026-03-01T10:30", zone), zone)).toBe("2026-03-01T10:30");
      expect(toDateField(fromDateField("2026-03-01T10:30:07", zone), zone)).toBe("2026-03-01T10:30:07");
      expect([fromDateField("", zone), fromDateField("x", zone)]).toEqual(["", INCOMPLETE]);
      expect([toDateField(undefined, zone), toDateField("x", zone)]).toEqual(["", ""]);
    }
  });
});

test("a query's absolute range is sent as from and to, and only what is entered is sent", () => {
  const extent = { timeRange: "", ...createLastDay(new Date("2026-03-02T10:30:59Z")), limit: "" };
  expect(buildWarmCall("q", [], extent).query).toEqual([
    ["from", "2026-03-01T10:30:00.000Z"],
    ["to", "2026-03-02T10:30:00.000Z"],
  ]);
  expect(buildAdHocCall("T", { ...extent, to: "" }).body).toEqual({
    query: "T",
    from: "2026-03-01T10:30:00.000Z",
    limit: 1000,
  });
  expect(buildAdHocCall("T", { timeRange: "PT1H", from: "", to: "", limit: "5" }).body).toEqual({
    query: "T",
    timeRange: "PT1H",
    limit: 5,
  });
});

test("the filter of a column applies to the times that the table shows after a switch of the zone", async () => {
  setLocalHours();
  const box = document.body.appendChild(document.createElement("div"));
  const columns = [{ key: "at", title: "At", type: "time" as const, value: (row: string) => row }];
  const shown = h(DataTable<string>, { label: "", columns, rows: [INSTANT], rowKey: (row) => row, adjustable: true });
  await act(() => render(shown, box));
  const input = box.querySelector("input");
  await act(() => {
    if (input) input.value = "10:30";
    input?.dispatchEvent(new Event("input", { bubbles: true }));
  });
  expect(box.querySelectorAll("time")).toHaveLength(0);
  await act(toggleZone);
  expect(box.querySelector("time")?.textContent).toBe("2026-03-01 10:30:05");
  act(() => render(null, box));
  box.remove();
});
