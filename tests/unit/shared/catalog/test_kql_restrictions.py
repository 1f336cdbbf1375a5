"""Tests of the restrictions of KQL texts; tests/emulators/kusto tests that the engines reject the same texts."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.kql_restrictions import PLUGINS, SET_OPTIONS, check_query_restrictions
from shared.errors import WorkspaceError
from tests.unit.shared.catalog.restricted_kql import ALLOWED

GAPS = st.lists(st.sampled_from([" ", "\t", "\n", "\r\n", "\u00a0", "\u200b", "\ufeff", "// | ( ' ;\n"]), max_size=3)
ESCAPES = [
    ["cluster", "(", "'x'", ")", ".", "database", "(", "'y'", ")", ".", "T"],
    ["[", "'database'", "]", "(", "'y'", ")", ".", "T"],
    ["Telemetry", "|", "union", "(", "external_table", "(", "'x'", ")", ")"],
    ["externaldata", "(", "a", ":", "string", ")", "[", "'https://x'", "]"],
    ["Telemetry", "|", "evaluate ", "hint", ".", "distribution", "=", "single ", "python", "(", "'x'", ")"],
    ["set ", "request_callout_disabled", "=", "false", ";", "Telemetry"],
    ["let", " x", "=", "1", ";", "alias ", "database", "=", "y", ";", "Telemetry"],
    ["macro", "-", "expand", " g", " as", " x", "(", "x", ".", "T", ")"],
]


def get_error(kql: str) -> WorkspaceError:
    """Return the error that rejects a KQL text."""
    with pytest.raises(WorkspaceError) as refused:
        check_query_restrictions(kql)
    return refused.value


@given(st.sampled_from(ESCAPES), st.data())
def test_gaps_between_tokens_do_not_hide_violations(tokens: list[str], data: st.DataObject) -> None:
    """White space and comments between tokens do not hide a forbidden construct."""
    # The engine accepts macro-expand only without gaps.
    gaps = ["".join(data.draw(GAPS)) if token not in ("macro", "-") else "" for token in tokens]
    kql = "".join(token + gap for token, gap in zip(tokens, gaps, strict=True))
    assert get_error(kql).code == "QUERY_INVALID"


@given(st.text(alphabet="ab('\"[]{}.;|@#`~\\/= \n\r\u2028evaluatclus", max_size=80))
def test_any_text_is_accepted_or_rejected_with_code(kql: str) -> None:
    """Any text is accepted, or rejected with an error code."""
    with suppress(WorkspaceError):
        check_query_restrictions(kql)


@pytest.mark.parametrize("kql", ALLOWED.values(), ids=ALLOWED)
def test_texts_similar_to_forbidden_constructs_are_accepted(kql: str) -> None:
    """Names, strings and comments that look like forbidden constructs are accepted."""
    check_query_restrictions(kql)


@pytest.mark.parametrize("plugin", sorted(PLUGINS))
def test_listed_plugins_are_accepted(plugin: str) -> None:
    """Each allowed plugin is accepted, also after parameters of the operator ``evaluate``."""
    check_query_restrictions(f"Telemetry | evaluate {plugin}(DeviceId)")
    check_query_restrictions(
        f"Telemetry | evaluate hint.distribution = per_node hint.pass_filters=true {plugin} (DeviceId)"
    )


@pytest.mark.parametrize("option", sorted(SET_OPTIONS))
def test_listed_request_properties_are_accepted(option: str) -> None:
    """Each allowed request property is accepted."""
    check_query_restrictions(f"set {option} = 1; let n = 1; Telemetry | take n")


@pytest.mark.parametrize(
    ("kql", "line", "column"),
    [
        ("Telemetry\n| union cluster('x').database('y').T", 2, 9),
        ("print a = ```two\nlines```\n| evaluate python()", 3, 3),
        ("let x = 1;\n  set notruncation; T", 2, 3),
        ("T | where a == 1\n  or ['app']('x') == 2", 2, 6),
        ("print a = bool(')'), b = 1", 1, 11),
        ("T // c\r| take 1", 1, 7),
    ],
)
def test_a_rejection_has_a_position_in_the_callers_text(kql: str, line: int, column: int) -> None:
    """The line and column of a rejection are those of the caller's text, also after a string of several lines."""
    error = get_error(kql)
    assert (error.members["line"], error.members["column"]) == (line, column)


def test_a_rejection_lists_the_allowed_plugins_or_settings() -> None:
    """The error about a forbidden plugin or setting lists the allowed plugins or settings."""
    assert "bag_unpack" in get_error("T | evaluate python()").detail
    assert "query_datascope" in get_error("set notruncation; T").detail


def test_very_long_chains_of_parameters_are_rejected() -> None:
    """A very long chain of nested ``evaluate`` parameters is rejected in linear time."""
    assert get_error("T | evaluate a=" + "evaluate a=" * 5000 + "x pivot(y)").code == "QUERY_INVALID"


def test_the_documentation_lists_the_allowed_plugins_and_settings() -> None:
    """docs/reference/kql.md lists each allowed plugin and setting."""
    page = (Path(__file__).parents[4] / "docs" / "reference" / "kql.md").read_text(encoding="utf-8")
    assert [name for name in sorted(PLUGINS | SET_OPTIONS) if f"`{name}`" not in page] == []
