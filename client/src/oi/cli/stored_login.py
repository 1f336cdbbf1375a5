"""Login that ``oi login`` stores: secrets in the system's keyring, else in a file that only the user can read."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click import UsageError

from oi.addresses import check_address_protects_credentials
from oi.credentials import check_credential_characters
from oi.drafts import create_draft_file
from oi.file_lock import lock_file

_SERVICE = "oi"
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Login:
    """Address of a workspace's service, and the API key or token that authenticates the user.

    Attributes:
        url: address of the service.
        key: API key; None if ``token`` is set.
        token: JWT, or a function that returns a valid JWT; None if ``key`` is set.
    """

    url: str
    key: str | None = None
    token: str | Callable[[], str] | None = None


def check_service_address(url: str) -> None:
    """Check that the address of a service protects a credential: https, or http to this computer.

    Raises:
        UsageError: the text is not an https address, or contains a user name; http is allowed only to this computer.
    """
    try:
        check_address_protects_credentials(url)
    except ValueError as error:
        raise UsageError(str(error)) from None


def require_login(url: str | None = None) -> Login:
    """Return the login from the variables ``OI_URL``, ``OI_KEY`` and ``OI_TOKEN``, else the stored login.

    Args:
        url: address of the service; if None, the address in ``OI_URL`` or in the stored login. A stored credential is
            used only for the address with which it was stored.

    Raises:
        UsageError: no address is known, or no credential for the address.
    """
    stored = read_login_file()
    url = url or os.environ.get("OI_URL") or stored.get("url")
    if not url:
        raise UsageError("No workspace is known. Run `oi login URL`, or set OI_URL and OI_KEY.")
    check_service_address(url)
    url = url.rstrip("/")  # as `oi login` stores it
    if token := _read_credential_variable("OI_TOKEN"):
        return Login(url, token=token)
    key = _read_credential_variable("OI_KEY")
    if not key and url == stored.get("url"):
        if "clientId" in stored:
            from oi.cli.stored_grant import StoredGrant  # noqa: PLC0415  loads httpx

            return Login(url, token=StoredGrant(url))
        key = stored.get("key") or find_secret_in_keyring(url)
    if not key:
        raise UsageError(f"No key is known for {url}. Run `oi login {url}`, or set OI_KEY.")
    return Login(url, key=key)


def _read_credential_variable(variable_name: str) -> str | None:
    """Return the credential in an environment variable; None if the variable is missing, an empty text if it is empty.

    Raises:
        UsageError: the credential has characters that no API key or token has.
    """
    value = os.environ.get(variable_name)
    try:
        check_credential_characters(value or "")
    except ValueError as error:
        raise UsageError(f"{variable_name}: {error}.") from None
    return value


@contextmanager
def lock_login() -> Iterator[None]:
    """Context manager: prevent other commands from changing the stored login at the same time.

    Files that a killed command left are removed, because they can contain a credential.
    """
    path = get_login_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock_file(path.with_name("login.lock")):
        # Earlier versions wrote `login.json.new`.
        for draft in (*path.parent.glob(f"{path.name}.*.part"), path.with_name(f"{path.name}.new")):
            draft.unlink(missing_ok=True)
        yield


def store_login_and_describe_location(url: str, key: str) -> str:
    """Store the address of a service and an API key; describe where the key is stored: in the keyring, or in a file.

    The caller holds the lock of :func:`lock_login`.
    """
    return store_secret_and_describe_location({"url": url}, "key", key)


def store_secret_and_describe_location(login: Mapping[str, Any], secret_name: str, secret: str) -> str:
    """Store a login and its secret; describe where the secret is stored: in the keyring, or in the login file.

    The secret of an earlier login at another address is removed from the keyring. The caller holds the lock of
    :func:`lock_login`.

    Args:
        login: JSON properties for the login file; the value of ``url`` identifies the secret in the keyring.
        secret_name: JSON property that contains the secret in the login file if the system has no keyring.
        secret: API key or refresh token.
    """
    earlier_url = read_login_file().get("url")
    if _try_write_secret_to_keyring(login["url"], secret):
        _write_login_file(login)
        place = "the keyring of this computer"
    else:
        _write_login_file({**login, secret_name: secret})
        place = f"{get_login_path()} (readable by you only)"
    if earlier_url and earlier_url != login["url"]:
        _delete_secret_from_keyring(earlier_url)
    return place


def remove_login() -> None:
    """Remove the stored login; do nothing if no login is stored. The caller holds the lock of :func:`lock_login`."""
    url = read_login_file().get("url")
    get_login_path().unlink(missing_ok=True)
    if url:
        _delete_secret_from_keyring(url)


def get_login_path() -> Path:
    """Return the path of the file that stores the login."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "oi" / "login.json"


def read_login_file() -> dict[str, Any]:
    """Return the JSON properties of the login file; empty if the file is missing or damaged."""
    try:
        stored = json.loads(get_login_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def find_secret_in_keyring(url: str) -> str | None:
    """Return the secret that the keyring stores for the address of a service; None if it stores no secret."""
    with suppress(Exception):  # no keyring package, no keyring, or a locked one
        import keyring  # noqa: PLC0415  optional

        value: str | None = keyring.get_password(_SERVICE, url)
        return value
    return None


def _try_write_secret_to_keyring(url: str, secret: str) -> bool:
    with suppress(Exception):  # as above
        import keyring  # noqa: PLC0415  optional

        keyring.set_password(_SERVICE, url, secret)
        return bool(keyring.get_password(_SERVICE, url) == secret)
    return False


def _delete_secret_from_keyring(url: str) -> None:
    with suppress(Exception):  # as in find_secret_in_keyring
        import keyring  # noqa: PLC0415  optional

        keyring.delete_password(_SERVICE, url)


def _write_login_file(content: Mapping[str, Any]) -> None:
    path = get_login_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with create_draft_file(path, _PRIVATE) as draft:
        with draft.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
