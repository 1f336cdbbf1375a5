"""A plan for people to read: ``+`` added, ``~`` changed, ``-`` removed, ``=`` kept, ``!`` kept against the document."""

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any, Final

from shared.catalog.diff import CatalogPlan, ItemChange

ABSENT: Final = object()


def plan_lines(plan: CatalogPlan) -> Iterator[str]:
    """Yield the lines of a plan, the summary last."""
    for change in plan.changes:
        yield from _change_lines(change)
    for kept in plan.retained:
        yield f"{'!' if kept.conflict else '='} {kept.kind} {kept.key}: {kept.reason}, stays as it is"
    counts = {sign: sum(_sign(change) == sign for change in plan.changes) for sign in "+~-"}
    yield f"{counts['+']} added, {counts['~']} changed, {counts['-']} removed, {len(plan.retained)} kept"


def _sign(change: ItemChange) -> str:
    if change.before is None:
        return "+"
    return "-" if change.after is None else "~"


def _change_lines(change: ItemChange) -> Iterator[str]:
    yield f"{_sign(change)} {change.kind} {change.key}"
    if change.before is not None and change.after is not None:
        for field, before, after in _differences("", change.before, change.after):
            yield from _field_lines(field, before, after)


def _differences(at: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields that differ, by dotted name, as deep as both sides are mappings."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        if before != after:
            yield at, before, after
        return
    for name in dict.fromkeys([*before, *after]):
        yield from _differences(f"{at}.{name}".removeprefix("."), before.get(name, ABSENT), after.get(name, ABSENT))


def _field_lines(field: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield f"    {field}:"
        compared = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
        yield from (f"      {line}" for line in compared[2:])
    else:
        yield f"    {field}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    return "(none)" if value is ABSENT else json.dumps(value, ensure_ascii=False)
