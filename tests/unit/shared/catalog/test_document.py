"""Tests of loading workspace documents, and of the position of each problem."""

from codecs import BOM_UTF8

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.auth.rights import AccessRight
from shared.catalog.document import decode_document, load_document
from shared.catalog.document_nodes import MAX_CHARACTERS, MAX_DEPTH
from shared.catalog.document_parsers import MAX_ALIASES
from shared.catalog.problems import MAX_LISTED, MAX_PROBLEMS, DocumentError
from tests.unit.shared.catalog.documents import PLANT


def list_problems(text: str) -> list[str]:
    """Return the problems of a document as lines."""
    with pytest.raises(DocumentError) as caught:
        load_document(text, "w.yaml")
    return [str(problem) for problem in caught.value.problems]


def replace_in_document(old: str, new: str) -> str:
    """Return the text of the valid document with one text replaced."""
    assert PLANT.count(old) == 1
    return PLANT.replace(old, new)


def test_valid_document_is_loaded() -> None:
    """A valid document is loaded with aliases and defaults."""
    document = load_document(PLANT, "w.yaml")
    assert [connection.lookup for connection in document.connections] == ["rig", "sim"]
    assert document.warm_queries[0].api_path == "cooling/q1"
    assert [parameter.is_required for parameter in document.warm_queries[0].parameters] == [False, True]


def test_the_rights_of_a_declared_member_are_loaded() -> None:
    """A document gives a member additional rights, and an unknown right is a problem at its position."""
    text = replace_in_document("role: Viewer", "role: Viewer, rights: [Workspace.Mcp.Use, Workspace.Mcp.Use]")
    assert load_document(text, "w.yaml").team[1].rights == (AccessRight.MCP_USE,)
    [problem] = list_problems(replace_in_document("role: Viewer", "role: Viewer, rights: [Workspace.Newer.Use]"))
    assert "team[1].rights[0]: is not an access right" in problem


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "requireApproval",
            "requireAproval",
            "2:25: policies.provenance.requireAproval: is not a known field; did you",
        ),
        ("name: Rig,", "nmae: Rig,", "8:5: connections[0].name: is required"),
        ("name: Rig,", "nmae: Rig,", "8:19: connections[0].nmae: is not a known field; did you mean name?"),
        ("apiPath:", "api_path:", "17:5: warmQueries[0].api_path: is not a known field; did you mean apiPath?"),
        ("periodSec: 60", "period: 60", "did you mean periodSec?"),
        (
            "id: viewer@plant-a.example,",
            "id: ..,",
            "team[1].id: must not be . or ..,",
        ),
        ("role: Viewer", "role: Boss", "5:54: team[1].role: should be 'Viewer', 'Editor' or 'Admin'"),
        ("service: true", "service: yes", "6:60: team[2].service: should be a valid boolean"),
        ("name: Second", "name: 2", "23:24: warmQueries[1].name: should be a valid string"),
        ("kind: sine", "kind: sinus", "12:45: connections[1].simulator.variables[0].kind: must be one of 'constant'"),
        ("kind: sine, ", "", "12:29: connections[1].simulator.variables[0].kind: is required"),
        ("min: 1,", "min: low,", "connections[1].simulator.variables[0].min: should be a valid number"),
        ("min: 1,", "min: .nan,", "connections[1].simulator.variables[0].min: a number must be finite"),
        ("periodSec: 60", "periodSec: 1e999", "variables[0].periodSec: a number must be finite"),
        ("min: 1,", f"min: {'9' * 400},", "variables[0].min: should be a finite number"),
        ("min: 1,", f"min: {'9' * 5000},", "variables[0].min: an integer must have at most 4300 digits"),
        ("min: 1,", f"min: 0x{'f' * 4000},", "variables[0].min: an integer must have at most 4300 digits"),
        (
            "2026-01-05T08:00:00Z",
            "2026-01-05T08:00:00",
            "warmQueries[0].approval.approvedAt: the date-time has no time zone",
        ),
        ("2026-01-05T08:00:00Z", "2026-01-05", "22:63: warmQueries[0].approval.approvedAt: an RFC 3339 date-time"),
        (
            "2026-01-05T08:00:00Z",
            "!!timestamp 2026-01-05",
            "approval.approvedAt: the YAML tag timestamp is not supported",
        ),
        ("service: true", "service: !!bool yes", "6:60: team[2].service: the text does not fit the YAML tag bool"),
        ("service: true", "service: !!null no", "team[2].service: the text does not fit the YAML tag null"),
        ("periodSec: 60", "periodSec: !!int abc", "periodSec: the text does not fit the YAML tag int"),
        ("periodSec: 60", "periodSec: !!int 1_0", "periodSec: the text does not fit the YAML tag int"),
        ("periodSec: 60", "periodSec: !!int 6.0", "periodSec: the text does not fit the YAML tag int"),
        ("min: 1,", 'min: !!int "1\\n",', "min: the text does not fit the YAML tag int"),
        ("min: 1,", "min: !!float x,", "min: the text does not fit the YAML tag float"),
        ("min: 1,", "min: !!float .inf,", "min: a number must be finite"),
        ("lookup: q2", "lookup: q/2", "23:14: warmQueries[1].lookup: must have up to 64 letters, digits, _ and -"),
        ("lookup: q2", "lookup: q2, lookup: q3", "23:18: warmQueries[1].lookup: repeats a key of line 23"),
        ("lookup: q2", "1: one, lookup: q2", "23:6: warmQueries[1]: keys must be text; put the key in quotes"),
        ("lookup: q2", "null: one, lookup: q2", "23:6: warmQueries[1]: keys must be text"),
        ("lookup: q2", "? [a] : b, lookup: q2", "warmQueries[1]: keys must be text"),
        ("lookup: q2", "<<: {name: X}, lookup: q2", "23:6: warmQueries[1].<<: is not a known field"),
        ("workspace: {id: plant-a", "workspace: !!python/object:os.system {id: plant-a", "is not supported"),
        ("connections: [rig, sim]", "connections: rig", "14:51: surfaces[0].connections: should be a valid array"),
        ('devices: ["rig-*"]', "devices: [7]", "connections[0].source.devices[0]: should be a valid string"),
        (
            "{name: t, kind: sine, min: 1, max: 2, periodSec: 60}",
            "",
            "12:17: connections[1].simulator.variables: must have at least 1 item",
        ),
        (
            "{name: t, kind: sine, min: 1, max: 2, periodSec: 60}",
            "{name: t, kind: constant, value: {a: 1}}",
            "variables[0].value: should be a valid number; should be a valid string; should be a valid boolean",
        ),
    ],
)
def test_each_problem_has_its_position(old: str, new: str, message: str) -> None:
    """A problem is one line with file, line, column, path of the field, and rule."""
    found = list_problems(replace_in_document(old, new))
    assert any(message in problem for problem in found), found
    assert all(problem.startswith("w.yaml:") for problem in found)


def test_values_with_a_tag_that_fits_are_read() -> None:
    """A scalar with an explicit tag is read if its text is a value of this type in YAML 1.2."""
    tagged = replace_in_document("service: true", "service: !!bool 'True'")
    tagged = tagged.replace("periodSec: 60", "periodSec: !!float 60").replace("min: 1,", "min: !!int 0x1,")
    assert tagged.count("!!") == 3
    assert load_document(tagged, "w.yaml") == load_document(PLANT, "w.yaml")


@pytest.mark.parametrize(
    ("content", "position"),
    [
        (b"a: \xff", "1:4"),
        (b"a: 1\nb: \xff", "2:4"),
        (b"\xff", "1:1"),
        ("ä: ".encode() + b"\xff", "1:4"),
        ("# €€\n".encode() + b"\xff", "2:1"),
    ],
)
@pytest.mark.parametrize("mark", [b"", BOM_UTF8])
def test_a_text_that_is_not_utf_8_is_one_problem(mark: bytes, content: bytes, position: str) -> None:
    """The position of an invalid byte is counted in characters, without a byte order mark."""
    with pytest.raises(DocumentError) as raised:
        decode_document(mark + content, "w.yaml")
    [problem] = raised.value.problems
    assert (f"{problem.line}:{problem.column}", problem.message) == (position, "the text is not UTF-8")


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    """One byte order mark at the start of a document is removed."""
    assert decode_document(BOM_UTF8 + b"a: 1", "w.yaml") == "a: 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: the document is empty"),
        ("5", "1:1: must be a mapping of fields"),
        ("[]", "1:1: must be a mapping of fields"),
        ("a: [1", "2:1: while parsing a flow sequence"),
        ("a: 1\n\tb: 2", "2:1: "),
        ("a: 1\n---\nb: 2", "2:1: expected a single document"),
        ("a: *nowhere", "1:4: found undefined alias"),
        ("a: x\nb: \x01", "2:4: control characters are not allowed"),
        ("a: \ud800", "1:4: the text has an unpaired surrogate"),
        ('a: "\\ud800"', "found invalid Unicode character escape code"),
        ("[" * 200_000, f"1:{MAX_DEPTH + 1}: the document is nested deeper than {MAX_DEPTH} levels"),
        ("team: &all [*all]", "1:13: team: aliases make the document too large or too deep"),
        (f"a: &a 1\nb: [{'*a,' * (MAX_ALIASES + 1)}]", f"has more than {MAX_ALIASES} aliases"),
        (" " * (MAX_CHARACTERS + 1), "1:1: the document is longer than"),
    ],
)
def test_a_text_that_is_not_yaml_is_one_problem(text: str, message: str) -> None:
    """A text that is not one YAML document, or exceeds a limit, is rejected with position and reason."""
    found = [problem for problem in list_problems(text) if message in problem]
    assert len(found) == 1


def test_yaml_aliases_that_expand_too_much_are_rejected() -> None:
    """YAML aliases that expand to billions of values are rejected at the limit."""
    layers = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "aliases make the document too large" in list_problems("\n".join(layers))[0]


@pytest.mark.parametrize(
    "text",
    [
        "workspace: {id: p, name: P}\nteam:\n" + "- {}\n" * 2_000,
        "".join(f"k{index}: 1\n" for index in range(2_000)),
        "team:\n" + "- !x 1\n" * 2_000,
        "workspace: {id: p, name: P}\nsurfaces:\n" + "- {lookup: a, name: A}\n" * 2_000,
    ],
    ids=["items", "unknown fields", "values", "rules between items"],
)
def test_validation_stops_after_many_problems(text: str) -> None:
    """At most 1,000 problems of a document are reported."""
    assert len(list_problems(text)) == MAX_PROBLEMS


def test_an_error_about_expanding_aliases_names_the_property() -> None:
    """If aliases make a document too large, the problem names the position and the property of an alias."""
    layers = ["workspace: {id: p, name: P}", "team: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert list_problems("\n".join(layers))[0].startswith("w.yaml:7:15: l5: aliases make")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("connections: [{lookup: [%s]}]", "w.yaml:1:15: connections[0]: must have at most 20000 values"),
        ("workspace: {id: [%s]}", "w.yaml:1:1: workspace: must have at most 20000 values"),
    ],
)
def test_an_item_or_a_field_has_at_most_20000_values(text: str, problem: str) -> None:
    """An item or field with more than 20,000 values is a problem, because it is validated in one call."""
    assert any(each.startswith(problem) for each in list_problems(text % ("1," * 20_000)))


def test_values_of_unknown_fields_are_not_validated() -> None:
    """An unknown field with many values is one problem."""
    found = [each for each in list_problems("x: [%s]" % ("1," * 20_001)) if "x" in each.split(": ")[1]]
    assert found == ["w.yaml:1:1: x: is not a known field"]


def test_an_alias_has_the_value_of_its_anchor() -> None:
    """An anchor and its aliases have the same value."""
    text = replace_in_document(
        "approvedBy: admin@plant-a.example, approvedAt: 2026",
        "approvedBy: &who admin@plant-a.example, approvedAt: 2026",
    )
    text = text.replace(
        "kql: Telemetry | take 1", "kql: T, approval: {approvedBy: *who, approvedAt: 2026-01-01T00:00:00+01:00}"
    )
    approval = load_document(text, "w.yaml").warm_queries[1].approval
    assert approval is not None
    assert (approval.approved_by, approval.approved_at.isoformat()) == (
        "admin@plant-a.example",
        "2025-12-31T23:00:00+00:00",
    )


def test_all_problems_are_reported_together() -> None:
    """Problems of syntax, fields and references are reported together, in the order of their lines."""
    text = replace_in_document("requireApproval: true", "requireApproval: 1").replace("name: Rig,", "name: 7,")
    text = text.replace("surface: cooling, kql", "surface: nowhere, kql").replace("apiPath:", "apipath:")
    found = list_problems(text)
    assert [problem.split(": ")[1] for problem in found] == [
        "policies.provenance.requireApproval",
        "connections[0].name",
        "warmQueries[0].apipath",
        "warmQueries[1].surface",
    ]


def test_reference_to_invalid_item_is_not_a_second_problem() -> None:
    """A reference to an invalid item is not reported as a further problem, but a reference to a missing item is."""
    text = replace_in_document("name: Rig,", "name: 7,").replace("connections: [rig, sim]", "connections: [rig, gone]")
    fields = [problem.split(": ", 1)[1] for problem in list_problems(text)]
    assert fields == [
        "connections[0].name: should be a valid string",
        "surfaces[0].connections[1]: unknown connection: gone",
    ]


def test_the_error_message_lists_a_limited_number_of_problems() -> None:
    """The message has the first problems and the number of further problems; the error object lists all problems."""
    text = replace_in_document("surfaces:\n", "surfaces:\n" + "  - {lookup: a/b, name: A}\n" * 50)
    with pytest.raises(DocumentError) as caught:
        load_document(text, "w.yaml")
    assert len(caught.value.problems) == 50
    assert str(caught.value).splitlines()[-1] == f"... and {50 - MAX_LISTED} more"


@given(st.text(max_size=200) | st.text(alphabet="ab:-[]{}&*!?<>|%@'\"\\ \n\t#,~1.0", max_size=80))
def test_any_text_is_a_document_or_a_document_error(text: str) -> None:
    """Loading any text returns a document or raises problems with positions, and nothing else."""
    with pytest.raises(DocumentError) as caught:
        load_document(text, "w.yaml")
    assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in caught.value.problems)


@given(st.integers(0, len(PLANT) - 1), st.integers(1, 12), st.text(alphabet="ab:-[]{}&*!\"' \n1,", max_size=4))
def test_damaged_document_gives_document_or_problems(start: int, length: int, put_in: str) -> None:
    """Loading a damaged document returns a document or raises problems with positions, and nothing else."""
    try:
        document = load_document(PLANT[:start] + put_in + PLANT[start + length :], "w.yaml")
    except DocumentError as error:
        assert error.problems  # noqa: PT017  either outcome is right
    else:
        assert document.workspace.id
