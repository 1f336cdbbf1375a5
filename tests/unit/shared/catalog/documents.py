"""Workspace documents for tests: a fixed document, and a Hypothesis strategy for random valid documents."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from shared.catalog.items import definitions_from_document
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog

PLANT = """\
workspace: {id: plant-a, name: Plant A}
policies: {provenance: {requireApproval: true}}
team:
  - {id: admin@plant-a.example, name: Admin, role: Admin}
  - {id: viewer@plant-a.example, name: Viewer, role: Viewer}
  - {id: historian, name: Historian, role: Admin, service: true}
connections:
  - {lookup: rig, name: Rig, type: CLOUD_EVENT_HUB, source: {devices: ["rig-*"]}}
  - lookup: sim
    name: Simulator
    type: SIMULATOR
    simulator: {variables: [{name: t, kind: sine, min: 1, max: 2, periodSec: 60}]}
surfaces:
  - {lookup: cooling, name: Cooling, connections: [rig, sim]}
warmQueries:
  - lookup: q1
    apiPath: cooling/q1
    name: First
    surface: cooling
    parameters: [{name: device, type: string, default: ""}, {name: since, type: datetime}]
    kql: Telemetry | count
    approval: {approvedBy: admin@plant-a.example, approvedAt: 2026-01-05T08:00:00Z}
  - {lookup: q2, name: Second, surface: cooling, kql: Telemetry | take 1}
dataStores:
  - lookup: mes
    databases:
      - lookup: orders
        containers:
          - {name: workorders, partitionKeyPath: /line, dataClass: operational, expose: [read, list]}
          - {name: recipes, partitionKeyPath: /id, dataClass: reference}
"""
"""Valid document with an item of every kind."""

APPROVED_AT = datetime(2026, 1, 5, 8, tzinfo=UTC)


def apply_to_catalog(document: WorkspaceDocument) -> StoredCatalog:
    """Return the catalog after a document was applied."""
    items = definitions_from_document(document).items()
    return StoredCatalog(
        1,
        tuple(
            CatalogItem(*item, definition, ItemOrigin.DECLARED, APPROVED_AT, APPROVED_AT, "apply")
            for item, definition in items
        ),
    )


_NAMES = st.sampled_from(["a", "b", "c"])
_FLAG = st.booleans()


def _draw_lists_of(
    strategy: st.SearchStrategy[dict[str, Any]], key: str = "lookup"
) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(strategy, max_size=3, unique_by=lambda item: item[key])


_PEOPLE = _draw_lists_of(
    st.fixed_dictionaries(
        {"id": st.sampled_from(["x@p", "y@p"]), "name": _NAMES, "role": st.sampled_from(["Viewer", "Editor"])},
        optional={"enabled": _FLAG, "rights": st.just(["Workspace.Keys.Manage"])},
    ),
    "id",
)
_CONTAINERS = _draw_lists_of(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["ab", "cd"]), "partitionKeyPath": st.just("/id"), "dataClass": st.just("reference")},
        optional={"expose": st.lists(st.sampled_from(["list", "read"]), unique=True), "provisioned": _FLAG},
    ),
    "name",
)
_WHOLE = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | _FLAG | st.integers() | _FLOATS, lambda values: st.lists(values, max_size=2), max_leaves=4
)


def _draw_parameters_of(kind: str, defaults: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"name": _NAMES, "type": st.just(kind)}, optional={"default": st.none() | defaults})


_PARAMETER = (
    _draw_parameters_of("long", _WHOLE)
    | _draw_parameters_of("real", _WHOLE | _FLOATS)
    | _draw_parameters_of("dynamic", _JSON)
)
_VARIABLE = st.one_of(
    st.fixed_dictionaries({"name": st.just("v"), "kind": st.just("constant"), "value": _FLOATS | _WHOLE | _FLAG}),
    st.fixed_dictionaries(
        {"name": st.just("v"), "kind": st.just("counter"), "start": st.integers(-(2**63), 2**63 - 1)}
    ),
)
_SIMULATOR = st.fixed_dictionaries(
    {"seed": st.integers(-(2**63), 2**63 - 1), "variables": st.lists(_VARIABLE, min_size=1, max_size=1)}
)
_CONNECTIONS = _draw_lists_of(
    st.fixed_dictionaries(
        {"lookup": _NAMES, "name": _NAMES, "type": st.just("CLOUD_EVENT_HUB")},
        optional={"enabled": _FLAG, "source": st.fixed_dictionaries({"devices": st.lists(_NAMES, max_size=2)})},
    )
    | st.fixed_dictionaries(
        {"lookup": _NAMES, "name": _NAMES, "type": st.just("SIMULATOR"), "simulator": _SIMULATOR},
    )
)


@st.composite
def draw_valid_document(draw: st.DrawFn) -> WorkspaceDocument:
    """Draw a valid document; its lookups (ids in URLs) are from a small pool, so that two documents share some."""
    connections = draw(_CONNECTIONS)
    known: list[str] = [connection["lookup"] for connection in connections]
    surfaces = [
        {
            "lookup": lookup,
            "name": draw(_NAMES),
            "connections": draw(st.lists(st.sampled_from(known), unique=True)) if known else [],
        }
        for lookup in draw(st.lists(_NAMES, unique=True, max_size=2))
    ]
    return WorkspaceDocument.model_validate(
        {
            "workspace": {"id": "plant-a", "name": draw(_NAMES)},
            "policies": draw(st.sampled_from([{}, {"provenance": {}}, {"provenance": {"requireApproval": True}}])),
            "team": [{"id": "admin@p", "name": "Admin", "role": "Admin"}, *draw(_PEOPLE)],
            "connections": connections,
            "surfaces": surfaces,
            "warmQueries": []
            if not surfaces
            else draw(_draw_queries([str(surface["lookup"]) for surface in surfaces])),
            "dataStores": draw(_draw_stores()),
            "alertRules": []
            if not surfaces
            else draw(_draw_alert_rules([str(one["lookup"]) for one in surfaces], known)),
        }
    )


@st.composite
def _draw_queries(draw: st.DrawFn, surfaces: list[str]) -> list[dict[str, Any]]:
    approval = {"approvedBy": "admin@p", "approvedAt": APPROVED_AT}
    return [
        {
            "lookup": lookup,
            "name": f"query {lookup}",
            "apiPath": draw(st.sampled_from([None, f"path/{lookup}"])),
            "surface": draw(st.sampled_from(surfaces)),
            "kql": draw(st.sampled_from(["Telemetry", "Telemetry | count"])),
            "parameters": draw(st.lists(_PARAMETER, max_size=1)),
            "approval": draw(st.sampled_from([None, approval])),
        }
        for lookup in draw(st.lists(_NAMES, unique=True, max_size=3))
    ]


@st.composite
def _draw_alert_rules(draw: st.DrawFn, surfaces: list[str], connections: list[str]) -> list[dict[str, Any]]:
    threshold = {
        "kind": "threshold",
        "query": "a",
        "condition": {"column": "n", "operator": "gt", "value": draw(_FLOATS)},
        "parameters": draw(st.dictionaries(_NAMES, _JSON, max_size=1)),
    }
    absence = {"kind": "absence", "connections": connections[:1], "after": "PT5M"}
    return [
        {
            "lookup": lookup,
            "name": draw(_NAMES),
            "severity": draw(st.sampled_from(["info", "critical"])),
            "surface": draw(st.sampled_from(surfaces)),
            "every": draw(st.sampled_from(["PT15S", "P1D"])),
            **draw(st.sampled_from([threshold, absence] if connections else [threshold])),
        }
        for lookup in draw(st.lists(_NAMES, unique=True, max_size=2))
    ]


@st.composite
def _draw_stores(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [
        {"lookup": lookup, "databases": [{"lookup": f"db-{lookup}", "containers": draw(_CONTAINERS)}]}
        for lookup in draw(st.lists(_NAMES, unique=True, max_size=2))
    ]
