import { describe, expect, it } from "vitest";
import { addressOf, filterCount, isWhole, placeOf, recordAddress } from "@/pages/audit/place.ts";
import { fromLocal, toLocal } from "@/pages/audit/times.ts";
import { parseHash } from "@/router/route.ts";

describe("the address of the audit page", () => {
  it("comes back as it was made", () => {
    const place = {
      chain: { target: "DomainEvents", scopeKey: "batch/7 +ü" },
      filters: {
        actionType: "a&b",
        entityType: "t",
        userId: "u@x",
        startDate: "2026-01-05T08:00:00.000Z",
        endDate: undefined,
      },
      at: 42,
      record: 7,
    } as const;
    expect(placeOf(parseHash(addressOf(place)))).toEqual(place);
  });

  it("without anything is the configuration's chain", () => {
    const place = placeOf(parseHash("#/audit"));
    expect(place).toMatchObject({
      chain: { target: "PlatformConfig", scopeKey: "" },
      at: undefined,
      record: undefined,
    });
    expect([filterCount(place.filters), isWhole(place.chain)]).toEqual([0, true]);
  });

  it("takes no scope for the workspace's own chains, and needs one for the others", () => {
    expect(placeOf(parseHash("#/audit/AccessControl/x")).chain.scopeKey).toBe("");
    expect(isWhole(placeOf(parseHash("#/audit/DomainEvents")).chain)).toBe(false);
    expect(recordAddress({ target: "DomainEvents", scopeKey: "s" }, 3)).toBe("#/audit/DomainEvents/s?record=3");
  });

  it("passes over numbers that are none", () => {
    expect(placeOf(parseHash("#/audit/DomainEvents/s?record=x&at=-1"))).toMatchObject({
      record: undefined,
      at: undefined,
    });
  });
});

describe("dates of filters", () => {
  it("are instants, shown in the reader's own time", () => {
    const instant = fromLocal("2026-03-01T10:30");
    expect(instant).toBe(new Date(2026, 2, 1, 10, 30).toISOString());
    expect(toLocal(instant)).toBe("2026-03-01T10:30");
    expect([fromLocal(""), fromLocal("x"), toLocal(undefined), toLocal("x")]).toEqual([undefined, undefined, "", ""]);
  });
});
