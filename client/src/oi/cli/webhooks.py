"""Commands for webhooks, which send events of the workspace to https addresses."""

from typing import IO, TYPE_CHECKING, Any

import click

from oi.cli.listen import listen_for_webhooks
from oi.cli.output import JSON_FILE, add_json_option, open_workspace, print_json, print_rows, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.group("webhooks")
def webhook_commands() -> None:
    """Show and change webhooks."""


webhook_commands.add_command(listen_for_webhooks)


@webhook_commands.command("list")
@add_json_option
def list_webhooks(as_json: bool) -> None:
    """List the webhooks."""
    with open_workspace() as workspace:
        found = workspace.webhooks.list()
    print_json({"webhooks": found}) if as_json else print_rows(found, ["id", "url", "eventTypes", "enabled"])


@webhook_commands.command("create")
@click.argument("url")
@click.option("--event-type", "event_types", multiple=True, required=True)
@click.option("--format", type=click.Choice(["standard", "teams", "slack"]), default="standard")
@click.option("--description", default="")
@add_json_option
def create_webhook(url: str, event_types: tuple[str, ...], as_json: bool, **members: Any) -> None:
    """Create a webhook; its secret is printed only this once."""
    with open_workspace() as workspace:
        created = workspace.webhooks.create(url, event_types, **members)
    _print_webhook_secret(created, as_json)


def _print_webhook_secret(webhook: "Mapping[str, Any]", as_json: bool) -> None:
    """Print a new secret to standard output, and the id of its webhook to standard error."""
    if as_json:
        print_json(webhook)
        return
    click.echo(f"webhook {webhook['id']}; store its secret now, it is not shown again:", err=True)
    click.echo(webhook["secret"])


@webhook_commands.command("show")
@click.argument("webhook_id")
@add_json_option
def show_webhook(webhook_id: str, as_json: bool) -> None:  # noqa: ARG001  the output is always JSON
    """Show a webhook as JSON, without its secret."""
    with open_workspace() as workspace:
        print_json(workspace.webhooks.get(webhook_id)[0])


@webhook_commands.command("put")
@click.argument("webhook_id")
@click.argument("file", type=JSON_FILE)
@click.option("--if-match", "etag", help="Replace the webhook only if it still has this ETag.")
@add_json_option
def put_webhook(webhook_id: str, file: IO[str], etag: str | None, as_json: bool) -> None:
    """Replace the definition of a webhook by a JSON file; its secret remains the same."""
    definition = read_json(file)
    with open_workspace() as workspace:
        stored = workspace.webhooks.put(webhook_id, definition, etag=etag)
    print_json(stored) if as_json else click.echo(f"{webhook_id} is stored")


@webhook_commands.command("rotate-secret")
@click.argument("webhook_id")
@add_json_option
def rotate_secret(webhook_id: str, as_json: bool) -> None:
    """Create a new secret for a webhook; the previous secret also signs for 24 hours."""
    with open_workspace() as workspace:
        rotated = workspace.webhooks.rotate_secret(webhook_id)
    _print_webhook_secret(rotated, as_json)


@webhook_commands.command("delete")
@click.argument("webhook_id")
@click.confirmation_option(prompt="Delete the webhook?")
@add_json_option
def delete_webhook(webhook_id: str, as_json: bool) -> None:
    """Delete a webhook."""
    with open_workspace() as workspace:
        workspace.webhooks.delete(webhook_id)
    if not as_json:
        click.echo(f"{webhook_id} is deleted")


@webhook_commands.command("test")
@click.argument("webhook_id")
@add_json_option
def test_webhook(webhook_id: str, as_json: bool) -> None:
    """Send a test event to a webhook."""
    with open_workspace() as workspace:
        delivery = workspace.webhooks.test(webhook_id)
    if as_json:
        print_json(delivery)
        return
    click.echo("the test event is on its way; `oi webhooks deliveries` shows the result")


@webhook_commands.command("deliveries")
@click.argument("webhook_id")
@click.option("--status", type=click.Choice(["pending", "delivered", "failed"]))
@add_json_option
def list_deliveries(webhook_id: str, status: str | None, as_json: bool) -> None:
    """Show the newest deliveries (sent or waiting events) of a webhook."""
    with open_workspace() as workspace:
        found = workspace.webhooks.deliveries(webhook_id, status=status)
    if as_json:
        print_json({"deliveries": found})
        return
    rows = [{**each, "attempts": len(each["attempts"])} for each in found]
    print_rows(rows, ["id", "eventType", "status", "attempts", "nextAttemptAt", "createdAt"])


@webhook_commands.command("retry")
@click.argument("webhook_id")
@click.argument("delivery_id")
@add_json_option
def retry_delivery(webhook_id: str, delivery_id: str, as_json: bool) -> None:
    """Send the event of a delivery again now; `oi webhooks deliveries` shows the ids."""
    with open_workspace() as workspace:
        delivery = workspace.webhooks.retry(webhook_id, delivery_id)
    if as_json:
        print_json(delivery)
        return
    click.echo(f"{delivery_id} is on its way; `oi webhooks deliveries` shows the result")
