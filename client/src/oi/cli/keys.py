"""Commands for API keys."""

from typing import Any

import click

from oi.cli.output import add_json_option, open_workspace, print_json, print_rows

_ROUTE = "/workspace/api/keys"


@click.group("keys")
def key_commands() -> None:
    """List, create and revoke API keys."""


@key_commands.command("list")
@add_json_option
def list_keys(as_json: bool) -> None:
    """List your API keys."""
    with open_workspace() as workspace:
        found = workspace.request("GET", _ROUTE)
    if as_json:
        print_json(found)
        return
    print_rows(found["keys"], ["keyId", "name", "principal", "createdAt", "expiresAt", "lastUsedAt", "revokedAt"])


@key_commands.command("create")
@click.argument("name")
@click.option("--principal", help="Member of the key; the caller if omitted.")
@click.option("--right", "rights", multiple=True, help="An access right of the key; all of the member if omitted.")
@click.option("--expires-in-days", type=click.IntRange(1))
@click.option("--connection", "connections", multiple=True, help="Bind the key to a connection; for devices.")
@click.option("--device", "devices", multiple=True, help="Bind the key to device ids that match a pattern.")
@add_json_option
def create_key(as_json: bool, **members: Any) -> None:
    """Create an API key; it is printed only this once."""
    names = {"expires_in_days": "expiresInDays"}
    body = {names.get(name, name): value for name, value in members.items() if value not in (None, ())}
    with open_workspace() as workspace:
        created = workspace.request("POST", _ROUTE, json=body, appends=True)
    if as_json:
        print_json(created)
        return
    click.echo(f"key {created['keyId']} of {created['principal']}; store it now, it is not shown again:", err=True)
    click.echo(created["apiKey"])


@key_commands.command("revoke")
@click.argument("key_id")
@add_json_option
def revoke_key(key_id: str, as_json: bool) -> None:
    """Revoke an API key; its tokens become invalid within 15 seconds."""
    from oi.requests import quote_path_segment  # noqa: PLC0415  loads httpx

    with open_workspace() as workspace:
        workspace.request("DELETE", f"{_ROUTE}/{quote_path_segment(key_id)}")
    if not as_json:
        click.echo(f"key {key_id} is revoked")
