"""Query operator ``render``, which changes no rows and annotates the result with a visualization.

The annotation has the same properties as ``Visualization`` in the replies of Data Explorer.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir
from duckdb_kql._state import State

from emulators.kusto.errors import semantic_error, syntax_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import add_operator
from emulators.kusto.extensions.tree import (
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    list_nodes_by_rule,
)
from emulators.kusto.string_literals import parse_string_literal

SUPPORTED: tuple[str, ...] = ("render (annotation Visualization of the result)",)

type Annotation = dict[str, Any]

_KINDS = (
    "table", "list", "barchart", "piechart", "ladderchart", "timechart", "linechart", "anomalychart", "pivotchart",
    "areachart", "stackedareachart", "scatterchart", "timepivot", "columnchart", "timeline", "3Dchart", "card",
    "treemap", "plotly", "graph", "sankey",
)  # fmt: skip
EMPTY: Annotation = {
    "Visualization": None, "Title": None, "XColumn": None, "Series": None, "YColumns": None, "AnomalyColumns": None,
    "XTitle": None, "YTitle": None, "XAxis": None, "YAxis": None, "Legend": None, "YSplit": None, "Accumulate": False,
    "IsQuerySorted": False, "Kind": None, "Ymin": "NaN", "Ymax": "NaN", "Xmin": None, "Xmax": None,
}  # fmt: skip
"""Annotation of a result without ``render``."""
_MEMBERS = {name.lower(): name for name in EMPTY if name not in ("Visualization", "IsQuerySorted")}
_LISTS = frozenset({"Series", "YColumns", "AnomalyColumns"})
_RENDERED: State[list[Annotation]] = State("emulators.kusto.rendered", list)


@contextlib.contextmanager
def collect_annotations() -> Iterator[list[Annotation]]:
    """Context manager: collect the annotations of all ``render`` operators of a query; yield the list."""
    with _RENDERED.bound([]) as collected:
        yield collected


def check_annotation_columns(annotation: Mapping[str, Any], result_columns: Sequence[str]) -> None:
    """Check that all columns to which an annotation refers are columns of the result.

    Raises:
        QueryError: a column does not exist.
    """
    named = [annotation["XColumn"], *(name for each in sorted(_LISTS) for name in annotation[each] or ())]
    for name in named:
        if name is not None and name not in result_columns:
            raise semantic_error(f"Failed to resolve column named '{name[:200]}'", subject=name)


def _parse_render(node: ParseNode) -> list[ir.Operator]:
    kind = node.getChild(1).getText()
    if kind not in _KINDS:
        message = f"render: unknown visualization '{kind[:60]}'; use one of {', '.join(_KINDS)}"
        raise syntax_error(message, get_line_and_column(node))
    annotation: Annotation = {**EMPTY, "Visualization": kind}
    seen: set[str] = set()
    for rule in ("RenderOperatorProperty", "RenderOperatorLegacyProperty"):
        for each in list_nodes_by_rule(node, rule):
            name = _MEMBERS.get(each.getChild(0).getText().lower())
            if name is None:
                continue
            if name in seen:
                raise semantic_error(
                    f"render: property '{name.lower()}' occurs twice", position=get_line_and_column(each)
                )
            seen.add(name)
            annotation[name] = _read_render_property(name, each.getChild(each.getChildCount() - 1))
    _RENDERED.get().append(annotation)
    return []


def _read_render_property(property_name: str, node: ParseNode) -> bool | float | str | list[str]:
    if property_name in _LISTS:
        return (
            [_read_column_name(child) for child in (get_child_rules(node) or [node])]
            if _is_name_list(node)
            else [_read_column_name(node)]
        )
    if property_name == "XColumn":
        return _read_column_name(node)
    if property_name in ("Title", "XTitle", "YTitle"):
        return _read_title_text(node)
    text: str = node.getText()
    if property_name == "Accumulate":
        return text.lower() == "true"
    return float(text) if property_name in ("Ymin", "Ymax") else text


def _is_name_list(node: ParseNode) -> bool:
    return get_rule_name(node) == "RenderPropertyNameList"


def _read_column_name(node: ParseNode) -> str:
    found = reader.name_text(reader.collapse(node))
    return str(node.getText() if found is None else found)


def _read_title_text(node: ParseNode) -> str:
    text = node.getText()
    if text[:1] in "\"'@hH":
        return parse_string_literal(text)
    value = reader.lower_expr(node)
    if isinstance(value, ir.LetRef):
        value = value.value
    if isinstance(value, ir.Literal) and isinstance(value.value, str):
        return value.value
    raise semantic_error("render: a title must be a string", position=get_line_and_column(node))


macros: tuple[str, ...] = ()


def install_into_translator() -> None:
    """Make the translator library collect the annotations of ``render`` instead of ignoring them."""
    add_operator("RenderOperator", _parse_render)
