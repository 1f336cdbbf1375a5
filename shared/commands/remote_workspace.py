"""HTTPS client of a service's workspace document, for the command ``shared.commands.workspace`` with ``--url``.

This module is separate from ``workspace`` because that command can also change stores directly, without HTTPS.
"""

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from shared.catalog.diff import CatalogPlan, ItemChange, RetainedItem
from shared.catalog.problems import DocumentError, Problem
from shared.errors import Kind, WorkspaceError

_DOCUMENT: Final = "/oi-api/workspace/document"
_TIMEOUT_SECONDS: Final = 240
_KEPT: Final = "created through the API"
_UNAVAILABLE: Final = frozenset(
    {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)


type PlanJson = dict[str, Any]
"""Plan in a reply of the service: the changes that applying a workspace document makes."""

type ReplyBody = bytes


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirect, because ``urllib`` would send the credential to the new address."""

    def redirect_request(self, *_: Any) -> None:
        """Return None, so that ``urllib`` raises the redirect as an error."""


class RemoteWorkspace:
    """HTTPS client of a service's endpoints for its workspace document.

    Args:
        url: base URL of the service; https, or http on this machine.
        api_key: API key of the caller; it is exchanged for a token before the first request.

    Raises:
        WorkspaceError: INVALID ``INVALID_REQUEST`` if the URL is not allowed.
    """

    def __init__(self, url: str, api_key: str) -> None:
        _check_url(url)
        self._url = url.rstrip("/")
        self._api_key = api_key
        self._token = ""
        # A proxy would get the credential in clear text over http, and could not reach this machine.
        proxies = urllib.request.ProxyHandler({} if urlsplit(url).scheme == "http" else None)
        self._opener = urllib.request.build_opener(_NoRedirects, proxies)

    def request_plan(self, document_bytes: bytes, document_path: Path) -> PlanJson:
        """Return the service's plan for a workspace document: the changes that applying it would make, as JSON values.

        Args:
            document_bytes: text of the workspace document.
            document_path: path of the document's file.

        Raises:
            DocumentError: the document has problems.
            WorkspaceError: the service rejects the request or is unavailable, or the reply is that of another service.
            OSError: the service cannot be reached.
        """
        return _parse_plan_reply(
            self._send_document_and_return_reply("POST", f"{_DOCUMENT}/plan", document_bytes, document_path, {})
        )

    def apply_document_and_return_plan(self, document_bytes: bytes, document_path: Path, plan_tag: str) -> PlanJson:
        """Apply a workspace document if its plan has not changed since :meth:`request_plan`, and return the plan.

        Args:
            document_bytes: text of the workspace document.
            document_path: path of the document's file.
            plan_tag: entity tag of the plan: its property ``planTag``.

        Raises:
            DocumentError: as :meth:`request_plan`.
            WorkspaceError: the same errors as :meth:`request_plan`, and if the workspace has changed since the plan.
            OSError: as :meth:`request_plan`.
        """
        return _parse_plan_reply(
            self._send_document_and_return_reply(
                "PUT", _DOCUMENT, document_bytes, document_path, {"If-Match": plan_tag}
            )
        )

    def export_document(self, media_type: str) -> ReplyBody:
        """Return the whole workspace as a workspace document.

        Args:
            media_type: format of the document: ``application/yaml`` or ``application/json``.

        Raises:
            WorkspaceError: the same errors as :meth:`request_plan`.
            OSError: as :meth:`request_plan`.
        """
        return self._send_with_token("GET", _DOCUMENT, {"Accept": media_type}, None)

    def _send_document_and_return_reply(
        self, method: str, url_path: str, document_bytes: bytes, document_path: Path, headers: Mapping[str, str]
    ) -> ReplyBody:
        media_type = "application/json" if document_path.suffix == ".json" else "application/yaml"
        try:
            return self._send_with_token(method, url_path, {**headers, "Content-Type": media_type}, document_bytes)
        except WorkspaceError as error:
            listed = error.members.get("errors")
            if not isinstance(listed, list) or not all("line" in one for one in listed):
                raise
            problems = [
                Problem(str(document_path), one["line"], one["column"], one["field"], one["message"]) for one in listed
            ]
            raise DocumentError(problems) from error

    def _send_with_token(self, method: str, url_path: str, headers: Mapping[str, str], body: bytes | None) -> ReplyBody:
        if not self._token:
            reply = self._send_request("GET", "/workspace/api/keys/jwt", self._api_key, {}, None)
            try:
                self._token = str(json.loads(reply)["Token"])
            except (ValueError, KeyError, TypeError):
                raise _build_invalid_reply_error() from None
        return self._send_request(method, url_path, self._token, headers, body)

    def _send_request(
        self, method: str, url_path: str, bearer_credential: str, headers: Mapping[str, str], body: bytes | None
    ) -> ReplyBody:
        allowed = {**headers, "Authorization": f"Bearer {bearer_credential}"}
        request = urllib.request.Request(self._url + url_path, body, allowed, method=method)  # noqa: S310  checked above
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as reply:
                content: bytes = reply.read()
                return content
        except urllib.error.HTTPError as error:
            with error:
                raise _error_from_http_reply(error) from None
        except (http.client.IncompleteRead, http.client.RemoteDisconnected):
            detail = "The connection ended before the reply was complete; the request may have been executed."
            raise WorkspaceError(Kind.UNAVAILABLE, "REPLY_INVALID", detail) from None
        except (http.client.HTTPException, ValueError):
            # For example a reply that is not HTTP, a host name that is too long, or a token with a line break.
            raise _build_invalid_reply_error() from None


def read_api_key(key_file: Path | None) -> str:
    """Read the API key from a file or from the environment, because a command line is visible to other users.

    Args:
        key_file: the file; None for the file that ``OI_KEY_FILE`` names, else the key in ``OI_KEY``.

    Raises:
        WorkspaceError: INVALID ``INVALID_REQUEST`` if there is no key, or the key is not printable ASCII.
        OSError: if the file cannot be read.
    """
    path = key_file or (Path(os.environ["OI_KEY_FILE"]) if os.environ.get("OI_KEY_FILE") else None)
    # Bytes that are not UTF-8 become characters that no key contains.
    content = path.read_text(encoding="utf-8-sig", errors="replace") if path else os.environ.get("OI_KEY", "")
    api_key = content.strip()
    if not api_key:
        detail = "Set OI_KEY to an API key, or name a file that contains one with --key-file or OI_KEY_FILE."
        raise WorkspaceError(Kind.INVALID, "INVALID_REQUEST", detail)
    if not (api_key.isascii() and api_key.isprintable()):
        detail = f"The API key in {path or 'OI_KEY'} must be one line of printable ASCII; a file must be UTF-8."
        raise WorkspaceError(Kind.INVALID, "INVALID_REQUEST", detail)
    return api_key


def plan_from_json(plan_json: Mapping[str, Any]) -> CatalogPlan:
    """Parse the plan (changes that a workspace document requires) in a JSON reply of the service."""
    changes = (ItemChange(one["kind"], one["key"], one["before"], one["after"]) for one in plan_json["changes"])
    kept = (
        RetainedItem(one["kind"], one["key"], one["reason"], conflict=one["reason"] != _KEPT)
        for one in plan_json["kept"]
    )
    return CatalogPlan(tuple(changes), tuple(kept))


def _parse_plan_reply(reply: bytes) -> PlanJson:
    """Parse the reply with a plan, and check that it has all parts of a plan.

    Raises:
        WorkspaceError: UNAVAILABLE ``REPLY_INVALID`` if the reply is not that of the service.
    """
    try:
        planned: PlanJson = json.loads(reply)
        plan_from_json(planned)
        is_complete = "planTag" in planned and all({"field", "message"} <= set(each) for each in planned["warnings"])
    except (ValueError, KeyError, TypeError):
        raise _build_invalid_reply_error() from None
    if not is_complete:
        raise _build_invalid_reply_error()
    return planned


def _build_invalid_reply_error() -> WorkspaceError:
    detail = "The reply is not that of a workspace service; check `--url`."
    return WorkspaceError(Kind.UNAVAILABLE, "REPLY_INVALID", detail)


def _check_url(url: str) -> None:
    parts = _split_and_check_url(url)
    if not parts.hostname or parts.scheme not in ("http", "https") or parts.username is not None:
        raise WorkspaceError(Kind.INVALID, "INVALID_REQUEST", "`--url` must be an https URL without a user name.")
    if parts.scheme == "http" and not _is_loopback_host(parts.hostname):
        detail = "`--url` must use https, because an API key is sent; http is accepted for this machine only."
        raise WorkspaceError(Kind.INVALID, "INVALID_REQUEST", detail)


def _split_and_check_url(url: str) -> SplitResult:
    detail = "`--url` must be a valid https URL of ASCII characters without spaces; a port must be from 1 to 65535."
    error = WorkspaceError(Kind.INVALID, "INVALID_REQUEST", detail)
    try:
        parts = urlsplit(url)
        is_valid = parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        raise error from None
    if not is_valid:
        raise error
    return parts


def _is_loopback_host(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _error_from_http_reply(error: urllib.error.HTTPError) -> WorkspaceError:
    """Convert an HTTP error reply to a WorkspaceError; the reply of a proxy is not always a problem document."""
    try:
        problem: dict[str, Any] = json.loads(error.read())
        code, detail = str(problem["code"]), str(problem["detail"])
    except (http.client.HTTPException, ValueError, KeyError, TypeError):
        problem, code, detail = {}, "HTTP_STATUS", f"the service replied {error.code} {error.reason}"
    kind = Kind.UNAVAILABLE if error.code in _UNAVAILABLE else Kind.INVALID
    known = {"errors": problem["errors"]} if "errors" in problem else {}
    return WorkspaceError(kind, code, detail, **known)
