import { expect, test } from "vitest";
import { areasOf, RIGHTS, tickedOf, toggled } from "../../src/pages/keys/scopes.ts";
import { itemsOf, moved, parentOf } from "../../src/pages/keys/tree.ts";
import type { Right } from "../../src/session/rights.ts";

const AUDIT: Right[] = ["Workspace.Provenance.Read", "Workspace.Provenance.Verify"];

test("every right stands in one area, and only those held are offered", () => {
  expect(areasOf(RIGHTS).flatMap((area) => area.rights)).toEqual(RIGHTS);
  expect(RIGHTS).toHaveLength(21);
  expect(areasOf(AUDIT)).toEqual([{ id: "Provenance", title: "Audit log", rights: AUDIT }]);
  expect(areasOf([])).toEqual([]);
});

test("the box of an area tells all, some and none, and ticks all or none", () => {
  const some = new Set<Right>(["Workspace.Provenance.Read", "Workspace.Mcp.Use"]);
  expect(tickedOf(AUDIT, some)).toBe("mixed");
  const all = toggled(AUDIT, some);
  expect([tickedOf(AUDIT, all), all.size]).toEqual(["true", 3]);
  const none = toggled(AUDIT, all);
  expect([tickedOf(AUDIT, none), [...none]]).toEqual(["false", ["Workspace.Mcp.Use"]]);
});

test("arrows move over what is unfolded and stop at the ends", () => {
  const areas = areasOf([...AUDIT, "Workspace.Mcp.Use"]);
  const items = itemsOf(areas, new Set(["Provenance"]));
  expect(items).toEqual(["Provenance", "Mcp", "Workspace.Mcp.Use"]);
  expect(moved("ArrowDown", items, "Provenance")).toBe("Mcp");
  expect(moved("ArrowUp", items, "Provenance")).toBe("Provenance");
  expect(moved("End", items, "Provenance")).toBe("Workspace.Mcp.Use");
  expect(moved("ArrowDown", items, "Workspace.Mcp.Use")).toBe("Workspace.Mcp.Use");
  expect(moved("x", items, "Mcp")).toBeUndefined();
  expect(parentOf(areas, "Workspace.Provenance.Verify")).toBe("Provenance");
  expect(parentOf(areas, "Provenance")).toBeUndefined();
});
