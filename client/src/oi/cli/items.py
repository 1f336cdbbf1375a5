"""Commands for team members, connections, surfaces (groups of connections) and alerts."""

from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING

import click

from oi.cli.output import JSON_FILE, add_json_option, open_workspace, print_json, print_rows, read_json

if TYPE_CHECKING:
    from oi import Workspace
    from oi._sync.items import Items


def _build_item_commands(
    group_name: str, json_property: str, columns: Sequence[str], get_items: Callable[["Workspace"], "Items"]
) -> click.Group:
    """Build the commands list, show, put and delete for one kind of item, such as connections.

    Args:
        group_name: name of the group of commands.
        json_property: name of the JSON property that contains the items in the output of ``list --json``.
        columns: properties of an item that ``list`` shows as columns.
        get_items: returns the part of the client that manages these items.
    """
    group = click.Group(group_name, help=f"Show and change {'members' if group_name == 'team' else group_name}.")

    @group.command("list", help=f"List all {'members' if group_name == 'team' else group_name}.")
    @add_json_option
    def list_items(as_json: bool) -> None:
        with open_workspace() as workspace:
            found = get_items(workspace).list()
        print_json({json_property: found}) if as_json else print_rows(found, columns)

    @group.command("show", help="Show the item with this id or lookup as JSON.")
    @click.argument("key")
    @add_json_option
    def show_item(key: str, as_json: bool) -> None:  # noqa: ARG001  the output is always JSON
        with open_workspace() as workspace:
            print_json(get_items(workspace).get(key)[0])

    @group.command("put", help="Create or replace the item with this id or lookup from a JSON file.")
    @click.argument("key")
    @click.argument("file", type=JSON_FILE)
    @click.option("--if-match", "etag", help="Replace the item only if it still has this ETag.")
    @add_json_option
    def put_item(key: str, file: IO[str], etag: str | None, as_json: bool) -> None:
        definition = read_json(file)
        with open_workspace() as workspace:
            stored = get_items(workspace).put(key, definition, etag=etag)
        print_json(stored) if as_json else click.echo(f"{key} is stored")

    @group.command("delete", help="Delete the item with this id or lookup.")
    @click.argument("key")
    @click.confirmation_option(prompt="Delete the item?")
    @add_json_option
    def delete_item(key: str, as_json: bool) -> None:
        with open_workspace() as workspace:
            get_items(workspace).delete(key)
        if not as_json:
            click.echo(f"{key} is deleted")

    return group


team = _build_item_commands(
    "team", "members", ["id", "name", "role", "enabled", "service"], lambda workspace: workspace.team
)
connections = _build_item_commands(
    "connections", "connections", ["lookup", "name", "type", "status"], lambda workspace: workspace.connections
)
surfaces = _build_item_commands(
    "surfaces", "surfaces", ["lookup", "name", "connections"], lambda workspace: workspace.surfaces
)


@click.group("alerts")
def alert_commands() -> None:
    """List, acknowledge and configure alerts."""


alert_commands.add_command(
    _build_item_commands(
        "rules", "rules", ["lookup", "name", "severity", "kind", "state"], lambda workspace: workspace.alerts.rules
    )
)


@alert_commands.command("list")
@click.option("--state", type=click.Choice(["pending", "firing", "resolved"]))
@click.option("--severity", type=click.Choice(["info", "warning", "critical"]))
@click.option("--surface", metavar="LOOKUP")
@add_json_option
def list_alerts(state: str | None, severity: str | None, surface: str | None, as_json: bool) -> None:
    """List alerts."""
    with open_workspace() as workspace:
        found = workspace.alerts.list(state=state, severity=severity, surface=surface)
    if as_json:
        print_json({"alerts": found})
        return
    print_rows(found, ["id", "rule", "labels", "state", "severity", "value", "firedAt", "acknowledgedBy"])


@alert_commands.command("acknowledge")
@click.argument("alert_id")
@click.option("--comment")
@add_json_option
def acknowledge_alert(alert_id: str, comment: str | None, as_json: bool) -> None:
    """Acknowledge an alert."""
    with open_workspace() as workspace:
        alert = workspace.alerts.acknowledge(alert_id, comment)
    print_json(alert) if as_json else click.echo(f"{alert_id} is acknowledged")
