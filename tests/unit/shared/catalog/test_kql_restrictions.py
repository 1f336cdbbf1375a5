"""Queries stay inside the workspace; the engines are tested with the same table in tests/emulators/kusto."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.kql_restrictions import PLUGINS, SET_OPTIONS, check_query
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


def refusal(kql: str) -> WorkspaceError:
    """Return the error that a text is refused with."""
    with pytest.raises(WorkspaceError) as refused:
        check_query(kql)
    return refused.value


@given(st.sampled_from(ESCAPES), st.data())
def test_gaps_between_tokens_hide_nothing(tokens: list[str], data: st.DataObject) -> None:
    """White space of every kind and comments between any two tokens leave a query refused."""
    # The engine knows macro-expand only without gaps.
    gaps = ["".join(data.draw(GAPS)) if token not in ("macro", "-") else "" for token in tokens]
    kql = "".join(token + gap for token, gap in zip(tokens, gaps, strict=True))
    assert refusal(kql).code == "QUERY_INVALID"


@given(st.text(alphabet="ab('\"[]{}.;|@#`~\\/= \n\r\u2028evaluatclus", max_size=80))
def test_every_text_is_decided(kql: str) -> None:
    """Any text is either accepted or refused with a code of its own."""
    with suppress(WorkspaceError):
        check_query(kql)


@pytest.mark.parametrize("kql", ALLOWED.values(), ids=ALLOWED)
def test_ordinary_queries_pass(kql: str) -> None:
    """Names, strings and comments that only resemble what is refused are accepted."""
    check_query(kql)


@pytest.mark.parametrize("plugin", sorted(PLUGINS))
def test_the_listed_plugins_pass(plugin: str) -> None:
    """Each allowed plugin passes, alone and behind parameters of evaluate."""
    check_query(f"Telemetry | evaluate {plugin}(DeviceId)")
    check_query(f"Telemetry | evaluate hint.distribution = per_node hint.pass_filters=true {plugin} (DeviceId)")


@pytest.mark.parametrize("option", sorted(SET_OPTIONS))
def test_the_listed_settings_pass(option: str) -> None:
    """Each allowed request property may be set."""
    check_query(f"set {option} = 1; let n = 1; Telemetry | take n")


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
def test_a_refusal_has_its_place(kql: str, line: int, column: int) -> None:
    """Line and column are those of the caller's own text, also behind a string of several lines."""
    error = refusal(kql)
    assert (error.members["line"], error.members["column"]) == (line, column)


def test_a_refusal_says_what_is_allowed() -> None:
    """The message names the plugins and the settings that may be used."""
    assert "bag_unpack" in refusal("T | evaluate python()").detail
    assert "query_datascope" in refusal("set notruncation; T").detail


def test_parameters_without_end_are_refused() -> None:
    """A chain of evaluates, each the other's parameter, is read once and refused."""
    assert refusal("T | evaluate a=" + "evaluate a=" * 5000 + "x pivot(y)").code == "QUERY_INVALID"


def test_the_documentation_lists_what_is_allowed() -> None:
    """Each allowed plugin and setting stands in docs/kql.md."""
    page = (Path(__file__).parents[4] / "docs" / "kql.md").read_text(encoding="utf-8")
    assert [name for name in sorted(PLUGINS | SET_OPTIONS) if f"`{name}`" not in page] == []
