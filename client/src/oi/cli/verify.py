"""Commands of the offline verifier. The verifier parses its options itself, because it must also run without click."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import click

from oi.cli.main import UNREACHABLE, WRONG_USAGE, ExitCode
from oi.verification.command import main
from oi.verification.fetch import FetchError, SignedInService

_RAW = {"ignore_unknown_options": True, "help_option_names": []}


@click.command("verify-file", context_settings=_RAW, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def verify_file(arguments: tuple[str, ...]) -> ExitCode:
    """Verify an exported audit chain or an audit bundle without the service."""
    return main(list(arguments))


@click.command("fetch", context_settings=_RAW, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def fetch_chain(arguments: tuple[str, ...]) -> ExitCode:
    """Download a whole audit chain and its newest checkpoint, for `oi verify-file`."""
    with ExitStack() as stack:
        return main(["fetch", *arguments], partial(_sign_in, stack))


def _sign_in(stack: ExitStack, url: str | None) -> SignedInService:
    """Open a workspace; return the address of its service, and a function that returns tokens for it.

    Args:
        stack: closes the workspace at its end.
        url: address of the service; if None, the address of the stored login or in the environment variables.

    Raises:
        FetchError: no address or credential is known.
    """
    from oi import Workspace  # noqa: PLC0415  loads httpx
    from oi.cli.stored_login import require_login  # noqa: PLC0415  verify-file needs no login

    try:
        login = require_login(url)
    except click.UsageError as error:
        raise FetchError(str(error), exit_status=WRONG_USAGE) from None
    with _convert_api_errors_to_fetch_errors():
        workspace = Workspace(login.url, key=login.key, token=login.token, scopes=["Workspace.Provenance.Read"])
    stack.enter_context(workspace)

    def get_token(is_rejected: bool) -> str:
        with _convert_api_errors_to_fetch_errors():
            return workspace.get_token(renew=is_rejected)

    return SignedInService(login.url, get_token)


@contextmanager
def _convert_api_errors_to_fetch_errors() -> Iterator[None]:
    """Context manager: if the client raises an ApiError, raise a FetchError with the exit status of the command."""
    from oi import ApiError  # noqa: PLC0415  loads httpx
    from oi.requests import is_service_unreachable  # noqa: PLC0415  loads httpx

    try:
        yield
    except ApiError as error:
        exit_status = UNREACHABLE if is_service_unreachable(error) else 1
        raise FetchError(str(error), error.status, exit_status=exit_status) from None
