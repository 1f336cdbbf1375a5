import { expect, test } from "vitest";
import {
  buildListAddress,
  buildSignedAddress,
  describeSubject,
  type ListedSignature,
  parseFilters,
} from "../src/pages/signatures/signatureList.ts";
import { parseHash } from "../src/router/route.ts";

const SIGNED = { target: "DomainAmendments", scopeKey: "line 1", recordID: "000000000012" } as ListedSignature;

test("the address of the list contains its filters", () => {
  const filters = { userId: "ann@t", from: "2026-05-01T00:00:00.000Z", to: "" };
  expect(parseFilters(parseHash(buildListAddress(filters)))).toEqual(filters);
});

test("a signature links to its record in the audit log", () => {
  expect(buildSignedAddress(SIGNED)).toBe("#/audit/DomainAmendments/line%201?record=12");
  expect(buildSignedAddress({ ...SIGNED, target: "PlatformConfig", scopeKey: null })).toBe(
    "#/audit/PlatformConfig?record=12",
  );
  expect(buildSignedAddress({ ...SIGNED, target: "Elsewhere" })).toBeUndefined();
});

test("a signature without a scope is about a query", () => {
  expect(describeSubject(SIGNED)).toBe("amendment of line 1");
  expect(describeSubject({ ...SIGNED, scopeKey: null })).toBe("query");
});
