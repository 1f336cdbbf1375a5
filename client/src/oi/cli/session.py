"""Commands to sign in and out, and to show the caller and the state of the workspace."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import click

from oi.cli.output import add_json_option, open_workspace, print_json, print_rows, read_key_from_standard_input
from oi.control_characters import escape_controls
from oi.counts import format_count


@click.command("login")
@click.argument("url")
@click.option("use_browser", "--browser", is_flag=True, help="Sign in as a person on a page of the service.")
@click.option("rights", "--right", multiple=True, metavar="RIGHT", help="Request only this right; with --browser.")
@click.option("--client-id", default="oi", show_default=True, help="OAuth client of the workspace; with --browser.")
@add_json_option
def log_in(url: str, use_browser: bool, rights: tuple[str, ...], client_id: str, as_json: bool) -> None:
    """Store the address and the credential of a workspace.

    The command asks for the API key, or reads it from standard input if that is not a terminal. The key is never an
    argument, because other users can see command lines. An empty key at the prompt signs in with the browser.

    The login replaces a stored one; an earlier sign-in with the browser is ended.

    \b
    Examples:
      oi login https://plant.example
      oi login https://plant.example --browser
      pass show plant-key | oi login https://plant.example
    """
    from oi import Workspace  # noqa: PLC0415  loads httpx
    from oi.cli.stored_login import check_service_address  # noqa: PLC0415  as above
    from oi.credentials import check_credential_characters  # noqa: PLC0415  as above

    url = url.rstrip("/")
    check_service_address(url)
    key = "" if use_browser else _read_api_key_or_empty()
    if use_browser or not key:
        from oi.cli.browser_login import sign_in_with_browser  # noqa: PLC0415  loads httpx
        from oi.cli.stored_grant import store_grant_and_describe_location  # noqa: PLC0415

        grant = sign_in_with_browser(url, client_id, rights or _list_all_access_rights())
        with Workspace(url, token=grant.access_token) as workspace:
            identity = workspace.whoami()
        with _replace_login():
            place = store_grant_and_describe_location(url, grant)
    else:
        from oi.cli.stored_login import store_login_and_describe_location  # noqa: PLC0415  as above

        try:
            check_credential_characters(key)
        except ValueError as error:
            raise click.UsageError(f"{error}.") from None
        with Workspace(url, key=key) as workspace:
            identity = workspace.whoami()
        with _replace_login():
            place = store_login_and_describe_location(url, key)
    who = identity["name"] or identity["principal"]
    text = f"signed in to {identity['workspace']} as {who}; the credential is in {place}"
    print_json(identity) if as_json else click.echo(text)


@contextmanager
def _replace_login() -> Iterator[None]:
    """Context manager: lock the stored login while the ``with`` block replaces it, then end the replaced sign-in.

    Only a sign-in with the browser is ended, with a request to its service. If this request fails, only a note is
    printed, because the service may no longer exist. The lock is held until the end of this request; without it, the
    block could overwrite a login that another command stored meanwhile, and that sign-in would never be ended.
    """
    from oi.cli.stored_grant import build_grant_from_stored_login, end_grant  # noqa: PLC0415  loads httpx
    from oi.cli.stored_login import lock_login, read_login_file  # noqa: PLC0415  as above
    from oi.errors import ApiError  # noqa: PLC0415  as above

    with lock_login():
        stored = read_login_file()
        # Read before the new login is stored, because its secret can replace the refresh token in the keyring.
        grant = build_grant_from_stored_login(stored) if {"clientId", "url"} <= stored.keys() else None
        yield
        if grant is None:
            return
        try:
            end_grant(stored["url"], grant)
        except ApiError as error:
            click.echo(
                escape_controls(f"note: the earlier sign-in at {stored['url']} was not ended: {error}"), err=True
            )


def _read_api_key_or_empty() -> str:
    if sys.stdin.isatty():
        prompt = "API key (empty: sign in by the browser)"
        return str(click.prompt(prompt, default="", hide_input=True, show_default=False)).strip()
    key = read_key_from_standard_input()
    if not key:
        raise click.UsageError("Standard input has no API key; use --browser to sign in as a person.")
    return key


def _list_all_access_rights() -> tuple[str, ...]:
    """Return all access rights, because a sign-in requests all of them.

    The service grants only those that the user has and does not deselect.
    """
    from oi.models import AccessRight  # noqa: PLC0415  large

    return get_args(AccessRight)


@click.command("logout")
def log_out() -> None:
    """Remove the stored login; a sign-in with the browser is also ended at the service.

    An API key remains valid until you revoke it with `oi keys revoke`.
    """
    from oi.cli.stored_login import lock_login, read_login_file, remove_login  # noqa: PLC0415  as above

    with lock_login():
        stored = read_login_file()
        if not stored:
            click.echo("no login is stored")
            return
        try:
            if "clientId" in stored:
                from oi.cli.stored_grant import build_grant_from_stored_login, end_grant  # noqa: PLC0415  loads httpx

                end_grant(stored["url"], build_grant_from_stored_login(stored))
        finally:
            remove_login()
            click.echo(f"the login of {stored.get('url')} is removed", err=True)


@click.command("whoami")
@add_json_option
def show_caller(as_json: bool) -> None:
    """Show the identity and the access rights of the caller."""
    with open_workspace() as workspace:
        identity = workspace.whoami()
    if as_json:
        print_json(identity)
        return
    click.echo(
        f"{identity['name']} ({identity['principal'] or 'a service without identity'}) in {identity['workspace']}"
    )
    for right in identity["accessRights"]:
        click.echo(f"  {right}")


@click.command("status")
@add_json_option
def show_workspace_status(as_json: bool) -> None:
    """Show the workspace and its connections."""
    with open_workspace() as workspace:
        shown = workspace.request("GET", "/oi-api/workspace")
        connections = workspace.connections.list()
    if as_json:
        print_json({"workspace": shown, "connections": connections})
        return
    stats = shown["stats"]
    counts = (
        format_count(stats["connectionCount"], "connection"),
        format_count(stats["surfaceCount"], "surface"),
        format_count(stats["queryCount"], "query", "queries"),
        format_count(stats["memberCount"], "member"),
    )
    click.echo(f"{shown['name']} ({shown['id']}), tier {shown['tier']}: {', '.join(counts)}")
    rows = [{**each, **(each.get("stats") or {})} for each in connections]
    print_rows(rows, ["lookup", "name", "status", "messagesReceived", "lastMessage"], empty_text="no connections")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def print_completion_script(shell: str) -> None:
    """Print the shell script that completes commands.

    \b
    Example:
      oi completion bash > ~/.local/share/bash-completion/completions/oi
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    from oi.cli.main import main  # noqa: PLC0415  imports this module

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion script for the shell {shell}.")
    click.echo(kind(main, {}, "oi", "_OI_COMPLETE").source())
