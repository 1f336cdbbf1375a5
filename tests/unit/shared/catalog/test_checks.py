"""Tests of the rules between different items of a document."""

import pytest

from shared.catalog.checks import iterate_warnings
from shared.catalog.document import load_document
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.test_document import list_problems, replace_in_document

SIMULATED = "{name: t, kind: sine, min: 1, max: 2, periodSec: 60}"
SIGNAL = "{name: p, pointer: /p, type: real, unit: bar, min: 1, max: 2}"
RIG_END = 'source: {devices: ["rig-*"]}'
Q2 = "{lookup: q2, name: Second, surface: cooling, kql: Telemetry | take 1}"
ADMIN = "approvedBy: admin@plant-a.example"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lookup: sim", "lookup: rig", "9:13: connections[1].lookup: is already the lookup of connections[0]"),
        ("lookup: q2", "lookup: q1", "23:14: warmQueries[1].lookup: is already the lookup of warmQueries[0]"),
        ("name: Second", "name: First", "warmQueries[1].name: is already the name of warmQueries[0]"),
        (
            "connections: [rig, sim]",
            "connections: [rig, gone]",
            "14:57: surfaces[0].connections[1]: unknown connection: gone",
        ),
        (
            "connections: [rig, sim]",
            "connections: [rig, rig]",
            "surfaces[0].connections[1]: occurs more than once in this list",
        ),
        ("surface: cooling\n", "surface: gone\n", "19:14: warmQueries[0].surface: unknown surface: gone"),
        (
            "name: Second",
            "name: Second, apiPath: cooling/q1",
            "warmQueries[1].apiPath: is already the apiPath of warmQ",
        ),
        (
            "name: Second",
            "name: Second, apiPath: q1",
            "warmQueries[1].apiPath: is already the lookup of warmQueries[0]",
        ),
        ("name: Second", "name: q1", "23:24: warmQueries[1].name: is already the lookup of warmQueries[0]"),
        ("name: Second", "name: cooling/q1", "23:24: warmQueries[1].name: is already the apiPath of warmQueries[0]"),
        ("name: First", "name: q2", "18:11: warmQueries[0].name: is already the lookup of warmQueries[1]"),
        ("name: Second", "name: Second, apiPath: a/approve", "warmQueries[1].apiPath: must not end in /approve"),
        ("name: Second", "name: Second, apiPath: a//b", "warmQueries[1].apiPath: must not have an empty"),
        ("name: Second", "name: Second, apiPath: a/../b", "warmQueries[1].apiPath: must not have an empty"),
        ("name: since", "name: device", "warmQueries[0].parameters[1].name: is already the name of another parameter"),
        (
            "kql: Telemetry | take 1",
            "kql: .drop table Telemetry",
            "23:55: warmQueries[1].kql: control commands are not supported; send a query (line 1, column 1 of",
        ),
        (
            "kql: Telemetry | count",
            "kql: |\n      Telemetry | count; // ;.x\n        .set T <| print 1",
            "21:10: warmQueries[0].kql: control commands are not supported; send a query (line 2, column 3 of",
        ),
        ("kql: Telemetry | take 1", 'kql: " // nothing"', "23:55: warmQueries[1].kql: must not be empty"),
        ('default: ""', "default: 4", "20:56: warmQueries[0].parameters[0].default: must be text of"),
        ("type: datetime", "type: datetime, default: 2026-01-01", "parameters[1].default: "),
        ("type: datetime", "type: long, default: 1.5", "parameters[1].default: must be a 64-bit whole number"),
        (
            "type: datetime",
            "type: timespan, default: P1M",
            "parameters[1].default: years and months have no fixed length",
        ),
        ("type: datetime", "type: timespan, default: 999999999999d", "parameters[1].default: "),
        ("type: datetime", "type: string, default: null", "parameters[1].default: must be text of"),
        ("policies:", "tier: enterprise\npolicies:", "limits: is required with tier enterprise"),
        (
            "id: viewer@plant-a.example",
            'id: "vie\\u200Bwer@plant-a.example"',
            "5:10: team[1].id: must not contain control, format or invisible characters (U+200B is",
        ),
        ("id: historian", 'id: "historian "', "6:10: team[2].id: must not begin or end with a space character"),
        ("id: historian", 'id: "\\uFF21DMIN@plant-a.example"', "6:10: team[2].id: is already the id of team[0]"),
        ("name: Historian", 'name: "\\u202Enairotsih"', "team[2].name: must not contain control, format"),
        ("name: Plant A", 'name: "Plant A "', "workspace.name: must not begin or end with a space"),
        ("name: Rig,", 'name: "Ri\\u00ADg",', "connections[0].name: must not contain control, format"),
        ("name: Cooling,", 'name: "Ku\\u0308hlung",', "surfaces[0].name: must be in Unicode normalization form C"),
        ("name: Second", 'name: "Second\\u00A0"', "warmQueries[1].name: must not begin or end with a space"),
        ("name: t, kind", 'name: "t\\uFEFF", kind', "simulator.variables[0].name: must not contain control, format"),
        ("role: Viewer}", 'role: Viewer, oid: " x"}', "team[1].oid: must not begin or end with a space"),
        (
            'devices: ["rig-*"]',
            'eventHub: "hub "',
            "connections[0].source.eventHub: must not begin or end with a space",
        ),
        (
            "requireApproval: true",
            'reasonCategories: ["a\\u200B"]',
            "reasonCategories[0]: must not contain control, format",
        ),
        (
            "policies:",
            "limits: {requestsPerMinute: 1, concurrent: 1}\npolicies:",
            "2:1: limits: is allowed only with tier",
        ),
        ("type: SIMULATOR", "type: CLOUD_IOT_HUB", "connections[1].simulator: is allowed only with type SIMULATOR"),
        ("type: CLOUD_EVENT_HUB", "type: SIMULATOR", "8:5: connections[0].simulator: is required with type SIMULATOR"),
        (
            RIG_END,
            f"{RIG_END}, signals: [{SIGNAL}, {SIGNAL}]",
            "connections[0].signals[1].name: is already the name of another signal of this connection",
        ),
        (
            RIG_END,
            f"{RIG_END}, signals: [{SIGNAL}, {{name: q, pointer: /p, type: long}}]",
            "connections[0].signals[1].pointer: is already the pointer of another signal",
        ),
        (
            RIG_END,
            f"{RIG_END}, signals: [{{name: q, pointer: /p, type: real, min: 2, max: 1}}]",
            "connections[0].signals[0].min: must not be above max",
        ),
        (
            RIG_END,
            f"{RIG_END}, signals: [{{name: q, pointer: /p, type: string, max: 1}}]",
            "connections[0].signals[0].max: is allowed only with type real or long",
        ),
        (
            RIG_END,
            f"{RIG_END}, signals: [{{name: q, pointer: p, type: string}}]",
            "connections[0].signals[0].pointer: ",
        ),
        (
            RIG_END,
            f"{RIG_END}, signals: [{{name: q, pointer: /p, type: int}}]",
            "connections[0].signals[0].type: ",
        ),
        ("max: 2,", "max: 0,", "12:56: connections[1].simulator.variables[0].min: must not be above max"),
        (
            SIMULATED,
            f"{SIMULATED}, {SIMULATED}",
            "simulator.variables[1].name: is already the name of another variable",
        ),
        (
            SIMULATED,
            "{name: t, kind: random-walk, min: 1, max: 2, step: 1, start: 3}",
            "start: must be between min and",
        ),
        (
            SIMULATED,
            "{name: t, kind: counter, start: 8, wrap: 8}",
            "wrap: must be above start",
        ),
        (
            SIMULATED,
            "{name: t, kind: counter, step: -1, wrap: 8}",
            "wrap: must be below start",
        ),
        (
            SIMULATED,
            "{name: t, kind: choice, values: [a, b], weights: [1]}",
            "weights: must have one weight for each of the 2",
        ),
        (
            SIMULATED,
            "{name: t, kind: choice, values: [a, b], weights: [0, 0]}",
            "weights: must be 0 or more, and at least",
        ),
        (
            SIMULATED,
            "{name: t, kind: choice, values: [a, b], weights: [2, -1]}",
            "weights: must be 0 or more, and at least",
        ),
        (ADMIN, "approvedBy: stranger", "22:28: warmQueries[0].approval.approvedBy: is not a member of the team"),
        (ADMIN, "approvedBy: viewer@plant-a.example", "must be a member with the right Workspace.WarmQuery.Approve"),
        (ADMIN, "approvedBy: historian", "is a service; only a person can approve"),
        ("id: viewer@", "id: ADMIN@", "5:10: team[1].id: is already the id of team[0]"),
        ("id: historian", "id: OAuth", "6:10: team[2].id: must not be oauth, in any letter case, because the service"),
        (
            "role: Viewer}",
            "role: Viewer, oid: o1}\n  - {id: z, name: Z, role: Viewer, oid: O1}",
            "team[2].oid: is already the oid",
        ),
        (
            "type: SIMULATOR",
            "type: SIMULATOR\n    source: {eventHub: h}",
            "source.eventHub: is allowed only with type CLOUD_EVENT",
        ),
        (
            'source: {devices: ["rig-*"]}',
            "source: {consumerGroup: g}",
            "consumerGroup: is allowed only with eventHub",
        ),
        (
            "requireApproval: true",
            "reasonCategories: [a, b, a]",
            "policies.provenance.reasonCategories[2]: occurs more than once in this list",
        ),
        (
            "provenance: {requireApproval: true}",
            "signatures: {queries: required}",
            "policies.signatures.queries: must be `off` without policies.provenance",
        ),
        (
            "requireApproval: true}",
            "requireApproval: true}, signatures: {meanings: [a, b, a]}",
            "policies.signatures.meanings[2]: occurs more than once in this list",
        ),
        (
            "requireApproval: true}",
            "requireApproval: true}, quotas: {streamsPerPrincipal: 6}",
            "policies.quotas.streamsPerPrincipal: must be at most 5 with tier free",
        ),
        (
            "requireApproval: true}",
            "requireApproval: true}, quotas: {jobsPerPrincipal: 11}",
            "policies.quotas.jobsPerPrincipal: must be at most 10 with tier free",
        ),
        (
            "requireApproval: true}",
            "requireApproval: true}, quotas: {downloadBytes: 53687091201}",
            "policies.quotas.downloadBytes: must be at most 53687091200 with tier free",
        ),
        (
            "requireApproval: true}",
            "requireApproval: true}, quotas: {downloadBytes: 0}",
            "policies.quotas.downloadBytes:",
        ),
        ("name: recipes", "name: workorders", "databases[0].containers[1].name: is already the name of"),
        (
            "dataStores:\n",
            "dataStores:\n  - {lookup: x, databases: [{lookup: orders}]}\n",
            "28:17: dataStores[1].databases[0].lookup: is a",
        ),
        (
            'devices: ["rig-*"]',
            "timestampPointer: ts",
            "connections[0].source.timestampPointer: must be a JSON pointer such as /ts",
        ),
        ('devices: ["rig-*"]', "timestampFormat: unix", "connections[0].source.timestampFormat: should be 'rfc3339', "),
        (
            'devices: ["rig-*"]',
            "timestampPointer: /a~2",
            "connections[0].source.timestampPointer: must be a JSON pointer such as /ts",
        ),
    ],
)
def test_a_broken_rule_between_items_is_reported_at_its_field(old: str, new: str, message: str) -> None:
    """If a rule between items is broken, the error is reported at the field that breaks it."""
    found = list_problems(replace_in_document(old, new))
    assert any(message in problem for problem in found), found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: Second", "name: Second, apiPath: q2"),
        ("role: Admin}", "role: Admin, enabled: false}"),
        ("policies:", "tier: enterprise\nlimits: {requestsPerMinute: 1, concurrent: 1}\npolicies:"),
        ("type: datetime", "type: timespan, default: 1.02:03:04"),
        ("type: datetime", "type: dynamic, default: {a: [1]}"),
        ('source: {devices: ["rig-*"]}', "source: {eventHub: h, consumerGroup: g}"),
        (SIMULATED, "{name: t, kind: constant, value: true}"),
        (SIMULATED, "{name: t, kind: choice, values: [a, 1, true], weights: [1, 0, 2]}"),
    ],
)
def test_unusual_valid_documents_are_accepted(old: str, new: str) -> None:
    """A query's API path may be its lookup (id in URLs), approvers may be disabled, and defaults may have any type."""
    assert load_document(replace_in_document(old, new), "w.yaml").workspace.id == "plant-a"


def test_document_without_provenance_is_valid() -> None:
    """A document without the provenance policy is valid."""
    assert (
        load_document(PLANT.replace("policies: {provenance: {requireApproval: true}}\n", ""), "w").policies.provenance
        is None
    )


RULES = """\
alertRules:
  - lookup: hot
    name: Hot
    severity: critical
    surface: cooling
    kind: threshold
    query: q1
    condition: {column: Count, operator: gt, value: 5}
    every: PT1M
  - {lookup: silent, name: Silent, severity: warning, surface: cooling, kind: absence, connections: [rig], after: PT5M,
     every: PT1M}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lookup: silent", "lookup: hot", "alertRules[1].lookup: is already the lookup of alertRules[0]"),
        ("connections: [rig], after", "connections: [gone], after", "alertRules[1].connections[0]: unknown connection"),
        ("connections: [rig], after", "connections: [], after", "connections: is required with kind absence"),
        ("surface: cooling\n    kind: threshold", "surface: x\n    kind: threshold", "alertRules[0].surface: unknown"),
        ("after: PT5M", "after: PT5M, groupBy: [a]", "alertRules[1].groupBy: is allowed only with kind threshold"),
        ("after: PT5M", "after: PT0S", "alertRules[1].after: must be a positive duration of at most 366 days"),
        ("after: PT5M", "after: PT5M, runbookUrl: 'javascript:x'", "runbookUrl: must be an http or https URL"),
        ("after: PT5M", "after: PT5M, for: P1Y", "alertRules[1].for: years and months have no fixed length"),
        ("value: 5}", "value: .nan}", "alertRules[0].condition.value"),
        ("value: 5}", "value: true}", "alertRules[0].condition.value: must be a number"),
        ("value: 5}", "value: '5'}", "alertRules[0].condition.value: must be a number"),
        ("value: 5}", f"value: 1{'0' * 400}}}", "alertRules[0].condition.value: must be a finite 64-bit number"),
        ("after: PT5M", "after: PT5M, runbookUrl: 'https://u:p@wiki/x'", "runbookUrl: must not contain a user name"),
        ("value: 5}", "rows: any}", "alertRules[0].condition.column: is not allowed together with `rows`"),
        (", value: 5}", "}", "alertRules[0].condition.value: is required unless `rows` is set"),
        (
            "condition: {column: Count, operator: gt, value: 5}",
            "condition: {rows: none}\n    groupBy: [a, a]",
            "alertRules[0].groupBy: is not allowed with `rows: none`",
        ),
        ("condition: {", "groupBy: [a, a]\n    condition: {", "alertRules[0].groupBy[1]: occurs more than once"),
    ],
)
def test_an_invalid_alert_rule_is_reported_at_its_field(old: str, new: str, message: str) -> None:
    """Fields that do not belong to the kind of rule, unknown references and invalid durations are reported."""
    assert old in RULES
    found = list_problems(PLANT + RULES.replace(old, new, 1))
    assert any(message in problem for problem in found), found


def test_an_alert_rule_may_name_an_undeclared_query() -> None:
    """If a document has an alert rule with an undeclared query, a warning is given, but the document is valid.

    There is no warning if the workspace keeps the query although the document lacks it.
    """
    document = load_document(PLANT + RULES.replace("query: q1", "query: gone"), "plant.yaml")
    assert [(path, "gone" in message) for path, message in iterate_warnings(document)] == [
        (("alertRules", 0, "query"), True)
    ]
    assert list(iterate_warnings(document, {"gone"})) == []
