"""Commands of the offline verifier. The verifier parses its options itself, because it must also run without click."""

import click

from oi.cli.main import UNREACHABLE, WRONG_USAGE
from oi.verification.command import main
from oi.verification.fetch import FetchError

_RAW = {"ignore_unknown_options": True, "help_option_names": []}


@click.command("verify-file", context_settings=_RAW, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def verify_file(arguments: tuple[str, ...]) -> int:
    """Verify an exported audit chain or an audit bundle without the service."""
    return main(list(arguments))


@click.command("fetch", context_settings=_RAW, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def fetch_chain(arguments: tuple[str, ...]) -> int:
    """Download a whole audit chain and its newest checkpoint, for `oi verify-file`."""
    return main(["fetch", *arguments], _get_url_and_token)


def _get_url_and_token(url: str | None) -> tuple[str, str]:
    """Return the address of a service and a token for it, from the login or the environment variables.

    Raises:
        FetchError: no address or credential is known, or the service rejects the credential.
    """
    from oi import ApiError, Workspace  # noqa: PLC0415  loads httpx
    from oi.cli.stored_login import require_login  # noqa: PLC0415  verify-file needs no login
    from oi.requests import is_service_unreachable  # noqa: PLC0415  loads httpx

    try:
        login = require_login(url)
        with Workspace(login.url, key=login.key, token=login.token, scopes=["Workspace.Provenance.Read"]) as workspace:
            return login.url, workspace.get_token()
    except click.UsageError as error:
        raise FetchError(str(error), exit_status=WRONG_USAGE) from None
    except ApiError as error:
        exit_status = UNREACHABLE if is_service_unreachable(error) else 1
        raise FetchError(str(error), error.status, exit_status=exit_status) from None
