import { expect, test } from "vitest";
import { checkLookup, checkName, findFieldMessage, splitLines } from "../../src/administration/fieldErrors.ts";

test("a field shows its own message, or those of its parts", () => {
  const errors = [
    { field: "name", message: "is required" },
    { field: "connections[1]", message: "unknown connection: x" },
    { field: "connections[2]", message: "occurs more than once in this list" },
    { field: "simulator.variables[0].min", message: "must be a number" },
    { field: "names", message: "is unknown" },
  ];
  expect(findFieldMessage(errors, "name")).toBe("is required");
  expect(findFieldMessage(errors, "connections")).toBe(
    "entry 2: unknown connection: x; entry 3: occurs more than once in this list",
  );
  expect(findFieldMessage(errors, "simulator")).toBe("variables[0].min: must be a number");
  expect(findFieldMessage(errors, "description")).toBeUndefined();
});

test("names and lookups follow the rules of the service", () => {
  expect(checkName("", "a name")).toBe("Enter a name.");
  expect(checkName(" x", "a name")).toContain("space");
  expect(checkName("x".repeat(257), "a name")).toContain("256");
  expect(checkName("x".repeat(256), "a name")).toBeUndefined();
  expect(checkLookup("pump-rig_2")).toBeUndefined();
  for (const wrong of ["", "-rig", "pump rig", "ü", "x".repeat(65)]) {
    expect(checkLookup(wrong)).toContain("64");
  }
});

test("a field with one entry a line ignores empty lines and spaces around entries", () => {
  expect(splitLines(" rig-* \n\n  plc-1\n")).toEqual(["rig-*", "plc-1"]);
  expect(splitLines("")).toEqual([]);
});
