"""Accessibility check of a browser page with axe-core."""

from collections.abc import Sequence
from typing import Final

from playwright.sync_api import Page

from tests.service.local_service import ROOT

AXE: Final = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"

_SERIOUS: Final = """async ([rules, others]) => {
  const lesser = axe._audit.rules.filter((rule) => ["minor", "moderate"].includes(rule.impact));
  const result = await axe.run({include: [["html"]], exclude: [others]}, {
    resultTypes: ["violations"],
    rules: Object.fromEntries(lesser.map((rule) => [rule.id, {enabled: false}])),
    ...(rules && {runOnly: {type: "rule", values: rules}}),
  });
  return result.violations.filter((rule) => ["serious", "critical"].includes(rule.impact))
    .flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary}`));
}"""
"""Rules whose findings are never serious are not checked, because they take half of the time."""


def find_accessibility_violations(
    page: Page, rules: Sequence[str] | None = None, excluded: str = "#third-party"
) -> list[str]:
    """Return axe's serious and critical findings on a page.

    The first check of a loaded page adds axe to it, because adding it to each page takes longer than most tests.

    Args:
        page: the page to check.
        rules: the rules to check; None for all.
        excluded: selector of an element that third-party code renders, which is not checked.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(_SERIOUS, [rules, excluded])
    return found
