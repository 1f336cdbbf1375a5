import { expect, test } from "vitest";
import { computeTickState, groupByArea, RIGHTS, toggleRights } from "../../src/components/rights/areas.ts";
import { findNextItem, findParent, listItems } from "../../src/components/rights/tree.ts";
import type { Right } from "../../src/session/rights.ts";

const AUDIT: Right[] = ["Workspace.Provenance.Read", "Workspace.Provenance.Verify"];

test("every right stands in one area, and only those held are offered", () => {
  expect(groupByArea(RIGHTS).flatMap((area) => area.rights)).toEqual(RIGHTS);
  expect(RIGHTS).toHaveLength(29);
  expect(groupByArea(AUDIT)).toEqual([{ id: "Provenance", title: "Audit log", rights: AUDIT }]);
  expect(groupByArea([])).toEqual([]);
});

test("the box of an area tells all, some and none, and ticks all or none", () => {
  const some = new Set<Right>(["Workspace.Provenance.Read", "Workspace.Mcp.Use"]);
  expect(computeTickState(AUDIT, some)).toBe("mixed");
  const all = toggleRights(AUDIT, some);
  expect([computeTickState(AUDIT, all), all.size]).toEqual(["true", 3]);
  const none = toggleRights(AUDIT, all);
  expect([computeTickState(AUDIT, none), [...none]]).toEqual(["false", ["Workspace.Mcp.Use"]]);
});

test("arrows move over what is unfolded and stop at the ends", () => {
  const areas = groupByArea([...AUDIT, "Workspace.Mcp.Use"]);
  const items = listItems(areas, new Set(["Provenance"]));
  expect(items).toEqual(["Provenance", "Mcp", "Workspace.Mcp.Use"]);
  expect(findNextItem("ArrowDown", items, "Provenance")).toBe("Mcp");
  expect(findNextItem("ArrowUp", items, "Provenance")).toBe("Provenance");
  expect(findNextItem("End", items, "Provenance")).toBe("Workspace.Mcp.Use");
  expect(findNextItem("ArrowDown", items, "Workspace.Mcp.Use")).toBe("Workspace.Mcp.Use");
  expect(findNextItem("x", items, "Mcp")).toBeUndefined();
  expect(findParent(areas, "Workspace.Provenance.Verify")).toBe("Provenance");
  expect(findParent(areas, "Provenance")).toBeUndefined();
});
