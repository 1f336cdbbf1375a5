"""Stored tokens of a sign-in with the browser, which all commands of a user share."""

import time
from typing import Any

from oi.cli.stored_login import find_secret_in_keyring, lock_login, read_login_file, store_secret_and_describe_location
from oi.credentials import RENEW_SECONDS, RenewableToken
from oi.errors import SignInError
from oi.oauth import Grant, open_http_client, refresh_grant, request_server_metadata, revoke_grant


def store_grant_and_describe_location(url: str, grant: Grant) -> str:
    """Store the tokens of a sign-in; describe where the refresh token is stored: in the keyring, or in a file.

    The caller holds the lock of :func:`lock_login`.
    """
    login = {
        "url": url,
        "clientId": grant.client_id,
        "accessToken": grant.access_token,
        "expiresAt": grant.expires_at,
        "scopes": list(grant.scopes),
    }
    return store_secret_and_describe_location(login, "refreshToken", grant.refresh_token)


class StoredGrant(RenewableToken):
    """Stored sign-in with the browser: an access token, and a refresh token that renews the access token.

    Args:
        url: address of the service at which the user signed in.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self) -> str:
        """Return an access token that is valid for at least another minute; renew the stored token if necessary.

        Raises:
            SignInError: the sign-in has ended, or a login at another service replaced it.
            ApiError: the service cannot be reached.
        """
        return self._get_token("")

    def renew(self, rejected_token: str) -> str:
        """Return another access token than ``rejected_token``, which the service has rejected.

        A token can be rejected although this computer's clock says that it is valid: the clock was set back after the
        sign-in, or the service has new signing keys.

        Raises:
            SignInError: as for a call.
            ApiError: as for a call.
        """
        return self._get_token(rejected_token)

    def _get_token(self, rejected_token: str) -> str:
        """Return the stored access token; renew it first if it expires within a minute or is ``rejected_token``."""
        stored = self._read_login()
        if not _is_access_token_usable(stored, rejected_token):
            # A refresh token works once: two processes that use the same one end the sign-in.
            with lock_login():
                stored = self._read_login()
                if not _is_access_token_usable(stored, rejected_token):
                    return _renew_access_token(stored)
        return str(stored["accessToken"])

    def _read_login(self) -> dict[str, Any]:
        stored = read_login_file()
        # Another command can have replaced the login; the caller would send the token of that service to this one.
        if stored and stored.get("url") != self._url:
            raise SignInError(0, "", f"You have signed in at another service. Run `oi login {self._url} --browser`.")
        return stored


def end_grant(url: str, grant: Grant) -> None:
    """End a sign-in at its service.

    Args:
        url: address of the service.
        grant: tokens of the sign-in.

    Raises:
        ApiError: the service rejects the request, or cannot be reached.
    """
    with open_http_client(url) as client:
        revoke_grant(client, request_server_metadata(client, url), grant)


def _is_access_token_usable(stored_login: dict[str, Any], rejected_token: str) -> bool:
    is_fresh = time.time() < float(stored_login.get("expiresAt", 0)) - RENEW_SECONDS
    return is_fresh and stored_login.get("accessToken") != rejected_token


def _renew_access_token(stored_login: dict[str, Any]) -> str:
    if "clientId" not in stored_login:
        raise SignInError(0, "", "You have signed out. Run `oi login URL`.")
    url = stored_login["url"]
    try:
        with open_http_client(url) as client:
            grant = refresh_grant(
                client, request_server_metadata(client, url), build_grant_from_stored_login(stored_login)
            )
    except SignInError as error:
        detail = f"The sign-in has ended: {error.detail} Run `oi login {url} --browser`."
        raise SignInError(error.status, error.code, detail, problem=error.problem) from None
    store_grant_and_describe_location(url, grant)
    return grant.access_token


def build_grant_from_stored_login(stored_login: dict[str, Any]) -> Grant:
    """Return the tokens of a stored sign-in; the refresh token is read from the keyring if the file has none.

    Args:
        stored_login: login file of a sign-in with the browser.
    """
    return Grant(
        client_id=stored_login["clientId"],
        access_token=stored_login["accessToken"],
        expires_at=float(stored_login["expiresAt"]),
        refresh_token=stored_login.get("refreshToken") or find_secret_in_keyring(stored_login["url"]) or "",
        scopes=stored_login.get("scopes", ()),
    )
