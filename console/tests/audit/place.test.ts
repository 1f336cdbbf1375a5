import { describe, expect, it } from "vitest";
import {
  buildAddress,
  buildRecordAddress,
  countFilters,
  findAddressError,
  isComplete,
  parsePlace,
} from "@/pages/audit/place.ts";
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
    expect(parsePlace(parseHash(buildAddress(place)))).toEqual(place);
  });

  it("without anything is the configuration's chain", () => {
    const place = parsePlace(parseHash("#/audit"));
    expect(place).toMatchObject({
      chain: { target: "PlatformConfig", scopeKey: "" },
      at: undefined,
      record: undefined,
    });
    expect([countFilters(place.filters), isComplete(place.chain)]).toEqual([0, true]);
  });

  it("needs no scope for the workspace's own chains, and needs one for the others", () => {
    expect(isComplete(parsePlace(parseHash("#/audit/AccessControl")).chain)).toBe(true);
    expect(isComplete(parsePlace(parseHash("#/audit/DomainEvents")).chain)).toBe(false);
    expect(buildRecordAddress({ target: "DomainEvents", scopeKey: "s" }, 3)).toBe("#/audit/DomainEvents/s?record=3");
  });

  it("has dates as the service reads them: a blank was a plus sign, and a time without a zone is in UTC", () => {
    const dates = (from: string, to: string) => {
      const { startDate, endDate } = parsePlace(parseHash(`#/audit/DomainEvents/s?from=${from}&to=${to}`)).filters;
      return [startDate, endDate];
    };
    expect(dates("2026-01-01T00:00:00+02:00", "2026-01-01T10:00:00.123456")).toEqual([
      "2026-01-01T00:00:00+02:00",
      "2026-01-01T10:00:00.123456Z",
    ]);
    expect(dates("2026-01-01+10:00", "2026-01-01")).toEqual(["2026-01-01T10:00Z", "2026-01-01"]);
    expect(dates("2026-01-01T00:00:00.000Z", "yesterday")).toEqual(["2026-01-01T00:00:00.000Z", "yesterday"]);
  });

  it("is an error if it names no chain, or contains an unknown, repeated or invalid parameter", () => {
    const find = (address: string) => findAddressError(parseHash(`#/audit${address}`));
    const valid = ["", "/AccessControl?at=42", "/DomainEvents", "/DomainEvents/batch%2F7?type=&record=000000000003"];
    expect(valid.map(find)).toEqual(valid.map(() => undefined));
    expect(find("/DomainEvent/line-1?record=3")).toContain("unknown target “DomainEvent”");
    expect(find("/PlatformConfig/line-1?record=3")).toContain("PlatformConfig has no scopes");
    expect(find("/DomainEvents/batch/7")).toContain("%2F");
    expect(find("/DomainEvents/s?enttiy=B-1")).toContain("unknown parameter “enttiy”");
    expect(find("/DomainEvents/s?record=1&record=2")).toContain("“record” more than once");
    for (const number of ["abc", "0", "-1", "1.5", "1e3", "", "1000000000000"]) {
      expect(find(`/DomainEvents/s?record=${number}`)).toContain("“record” of the address must be a whole number");
    }
  });
});
