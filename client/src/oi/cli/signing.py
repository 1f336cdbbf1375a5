"""Electronic signatures of decisions: command-line options, and a new sign-in if the service requires one."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from oi.cli.output import Command, open_workspace, read_key_from_standard_input

if TYPE_CHECKING:
    from oi import Workspace

Reply = TypeVar("Reply")
"""Reply of the service to a decision."""

_SIGN_IN_AGAIN = frozenset({"REAUTHENTICATION_REQUIRED", "SIGNATURE_TOKEN_USED", "DELEGATED_TOKEN"})
"""Codes of errors after which the decision is sent again with the API key of the same person.

Tokens of ``oi login --browser`` are delegated, and the service accepts no signatures with them.
"""
_MEANING = frozenset({"SIGNATURE_REQUIRED", "SIGNATURE_MEANING_INVALID"})


def add_signature_options(command: Command) -> Command:
    """Add the options ``--meaning`` and ``--statement`` to a command that approves or rejects something (decorator)."""
    for option in (
        click.option("--statement", metavar="TEXT", help="Text that is stored with the signature."),
        click.option(
            "--meaning", metavar="MEANING", help="Sign with this meaning, such as approval, review, rejection."
        ),
    ):
        command = option(command)
    return command


def send_decision(
    right: str, meaning: str | None, statement: str | None, send: Callable[["Workspace"], Reply]
) -> Reply:
    """Send a decision with the stored login.

    If the signature requires a new sign-in, read the API key and send the decision again.

    Args:
        right: access right that the decision needs.
        meaning: meaning of the signature; None for a decision without signature.
        statement: text that is stored with the signature.
        send: function that sends the decision to a workspace and returns the reply.

    Raises:
        UsageError: there is a statement without a meaning, or standard input contains no API key.
        ApiError: the service refuses the decision, or the API key belongs to another person.
    """
    from oi.errors import ApiError  # noqa: PLC0415  only commands that ran need it

    if statement is not None and meaning is None:
        raise click.UsageError("--statement is stored with a signature; pass --meaning, too, to sign.")
    with open_workspace() as workspace:
        try:
            return send(workspace)
        except ApiError as error:
            if error.code in _MEANING:
                _print_allowed_meanings(error.problem.get("allowed"))
            if meaning is None or error.code not in _SIGN_IN_AGAIN:
                raise
            click.echo(f"{error.detail}\nEnter your API key to sign this decision.", err=True)
        principal = workspace.whoami()["principal"]
    return _read_key_and_send_decision(right, principal, send)


def _print_allowed_meanings(allowed_meanings: Any) -> None:
    names = f" (one of: {', '.join(map(str, allowed_meanings))})" if isinstance(allowed_meanings, list) else ""
    click.echo(f"Sign with --meaning{names}.", err=True)


def _read_key_and_send_decision(right: str, principal: str | None, send: Callable[["Workspace"], Reply]) -> Reply:
    """Read the API key of the person who is signed in, send the decision with it, and return the reply.

    A sign-in with the browser is not possible here, because the service accepts no signatures with such tokens.

    Raises:
        SignInError: the key belongs to another person.
    """
    from oi import Workspace  # noqa: PLC0415  loads httpx
    from oi.cli.stored_login import require_login  # noqa: PLC0415

    url, key = require_login().url, _read_api_key_of_signer()
    _check_key_owner(url, key, principal)
    with Workspace(url, key=key, scopes=[right]) as workspace:
        return send(workspace)


def _read_api_key_of_signer() -> str:
    """Read the API key from the terminal, without echo, or from standard input."""
    if sys.stdin.isatty():
        return str(click.prompt("API key of the person who signs", hide_input=True)).strip()
    key = read_key_from_standard_input()
    if not key:
        raise click.UsageError("The signature requires the API key again; pass the key on standard input.")
    return key


def _check_key_owner(url: str, credential: str, expected_principal: str | None) -> None:
    """Check that a credential belongs to the signed-in person, so that nobody signs with another person's key.

    Raises:
        SignInError: the credential belongs to another person.
    """
    from oi import Workspace  # noqa: PLC0415  loads httpx
    from oi.errors import SignInError  # noqa: PLC0415

    with Workspace(url, token=credential) as workspace:
        found = workspace.whoami()["principal"]
    if found != expected_principal:
        detail = (
            f"The API key belongs to {found}, but {expected_principal} is signed in. Run `oi login` to sign as {found}."
        )
        raise SignInError(0, "", detail)
