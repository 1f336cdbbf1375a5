"""Comparison of the Bicep templates with the settings, resources and roles that the code needs."""

import re
from collections.abc import Callable, Iterator

from tests.infra.needs import Needs
from tests.infra.templates import Templates

HUB = "Microsoft.EventHub/namespaces/eventhubs"
BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers"
_ROLE = re.compile(r"role: '([^']+)'")
_METRIC = re.compile(r'"(workspace\.[^"]+)"')
_QUOTED = re.compile(r'Message (?:has|startswith) "([^"]+)"')


def find_disagreements(templates: Templates, needs: Needs) -> list[str]:
    """Return all differences between the parts in the templates and the parts that the code needs."""
    return [fault for check in CHECKS for fault in check(templates, needs)]


def _compare_settings(templates: Templates, needs: Needs) -> Iterator[str]:
    app = templates.find_template("app")
    deployed, platform = set(app.read_variable("appSettings")), set(app.read_variable("platformSettings"))
    yield from _find_differences("setting", deployed, needs.settings)
    yield from (f"setting %{name}% is not deployed" for name in needs.placeholders - deployed)
    for prefix in needs.connections:
        wanted = {f"{prefix}__{member}" for member in ("fullyQualifiedNamespace", "credential", "clientId")}
        yield from (f"setting {name} is not deployed" for name in wanted - deployed - platform)


def _compare_hubs(templates: Templates, needs: Needs) -> Iterator[str]:
    groups = {("impulses", group) for group in templates.list_resource_names("event-hubs", f"{HUB}/consumergroups")}
    yield from _find_differences(
        "hub", templates.list_resource_names("event-hubs", HUB), needs.hubs | {hub for hub, _ in needs.readers}
    )
    yield from _find_differences("reader", groups, {reader for reader in needs.readers if reader[1] != "$Default"})
    feed = templates.find_template("data-explorer").find_resource_body("feed")["properties"]
    if ("impulses", feed["consumerGroup"]) not in needs.readers or feed["tableName"] != f"{needs.table}Raw":
        yield "the query table's feed is another one"


def _compare_containers(templates: Templates, needs: Needs) -> Iterator[str]:
    if templates.read_json("cosmos-containers.json") != list(needs.cosmos):
        yield "cosmos-containers.json is not what scripts/cosmos_containers.py writes"
    if "loadJsonContent('../cosmos-containers.json')" not in templates.find_template("cosmos").text:
        yield "the module cosmos does not take cosmos-containers.json"
    yield from _find_differences("container", templates.list_resource_names("data-storage", BLOBS), needs.blobs)


def _compare_account(templates: Templates, _: Needs) -> Iterator[str]:
    template = templates.find_template("cosmos")
    properties = template.find_resource_body("account")["properties"]
    levels = set(re.findall(r"defaultConsistencyLevel: '(\w+)'", template.text))
    if levels != {"BoundedStaleness", "Strong"}:
        yield "the app refuses an account of this consistency"
    if properties["enableMultipleWriteLocations"] is not False:
        yield "the app refuses an account with several write regions"


def _compare_roles(templates: Templates, needs: Needs) -> Iterator[str]:
    access = templates.find_template("access")
    granted = {
        (each["kind"], each["part"], each["role"]) for name in ("host", "app") for each in access.read_variable(name)
    }
    yield from _find_differences("role", granted, needs.roles)
    every = set(_ROLE.findall(access.text))
    yield from _find_differences("role id", set(templates.read_json("roles.json")), every)


def _compare_table(templates: Templates, needs: Needs) -> Iterator[str]:
    text = (templates.folder / "telemetry.kql").read_text(encoding="utf-8")
    declared = re.search(rf"table {needs.table}Raw \((.*?)\)", text)
    columns = tuple(re.findall(r"(\w+):", declared[1])) if declared else ()
    yield from _find_differences("column", set(columns), set(needs.columns))
    yield from _find_differences("mapped column", set(re.findall(r'"column": "(\w+)"', text)), set(needs.columns))
    view = re.search(rf"\) {needs.table} on table .*?take_any\((.*?)\) by (.*?)\n", text, re.DOTALL)
    shown = set(re.split(r", ", f"{view[1]}, {view[2]}")) if view else set()
    yield from _find_differences("column of the view", shown, set(needs.columns))


def _compare_live_stream(templates: Templates, needs: Needs) -> Iterator[str]:
    hub = templates.find_template("live-stream").find_resource_body("hub")
    events = hub["properties"]["eventHandlers"][0]
    handler = events["urlTemplate"]
    gateway = templates.find_template("app-gateway").text
    yield from _find_differences(
        "live hub", {hub["name"], str(templates.find_template("app").read_variable("liveHub"))}, {needs.live_hub}
    )
    yield from _find_differences("event handler", {handler.removeprefix("${appUrl}/")}, {needs.live_events})
    yield from _find_differences("event", set(events["systemEvents"]), needs.live_system_events)
    for wanted in (f"'/{needs.live_stream}'", f"'/client/hubs/{needs.live_hub}'"):
        if wanted not in gateway:
            yield f"the gateway knows no path {wanted}"
    if needs.moved_header not in {name.lower() for name in re.findall(r"headerName: '(.*?)'", gateway)}:
        yield f"the gateway sets no {needs.moved_header}"


def _compare_alerts(templates: Templates, needs: Needs) -> Iterator[str]:
    for search in templates.find_template("alerts").read_variable("searches"):
        for text in _QUOTED.findall(search["query"]):
            if not any(
                text in message or _build_pattern_of_message_start(message).match(text) for message in needs.messages
            ):
                yield f"alert {search['name']} waits for {text!r}, which nothing logs"
        for metric in set(_METRIC.findall(search["query"])) - needs.metrics:
            yield f"alert {search['name']} looks at {metric}, which nothing measures"


def _build_pattern_of_message_start(message: str) -> re.Pattern[str]:
    """Return the start of a log message, up to its first placeholder."""
    return re.compile(re.escape(message).replace("%d", r"\d+") + "$" if "%d" in message else r"(?!)")


def _find_differences(subject: str, deployed: object, needed: object) -> Iterator[str]:
    assert isinstance(deployed, set | frozenset)
    assert isinstance(needed, set | frozenset)
    yield from (f"{subject} {each} is deployed and nothing needs it" for each in sorted(deployed - needed, key=str))
    yield from (f"{subject} {each} is needed and not deployed" for each in sorted(needed - deployed, key=str))


CHECKS: tuple[Callable[[Templates, Needs], Iterator[str]], ...] = (
    _compare_settings,
    _compare_hubs,
    _compare_containers,
    _compare_account,
    _compare_roles,
    _compare_table,
    _compare_live_stream,
    _compare_alerts,
)
