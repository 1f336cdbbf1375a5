"""Download of an audit chain and its newest checkpoint from a running service, for ``oi audit fetch``.

This module needs only the standard library.

It is separate from the verifier, because the verifier must not use the network.
"""

import base64
import hashlib
import http.client
import json
import os
import re
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from pathlib import Path
from time import sleep
from typing import Any, Final, NamedTuple

from oi.addresses import check_address_protects_credentials, describe_redirect, find_proxy_url
from oi.control_characters import escape_controls
from oi.counts import format_count
from oi.drafts import create_draft_file
from oi.instants import parse_retry_after_seconds
from oi.verification.hash_rule import LAST_SEQUENCE, parse_integer_or_exact_float
from oi.verification.merkle import CompactRange

PAGE: Final = 1_000
TIMEOUT_SECONDS: Final = 120
MAX_ATTEMPTS: Final = 5
MAX_WAIT_SECONDS: Final = 60
"""Maximum pause between two attempts; a longer ``Retry-After`` ends the attempts."""
_MAX_PROBLEM_BYTES: Final = 65_536
_WRONG_USAGE: Final = 2
_UNREACHABLE: Final = 3

_NO_NOTE: Final = {
    HTTPStatus.NOT_FOUND: "the service has no signed checkpoint of the chain yet",
    HTTPStatus.CONFLICT: "the service does not trust its newest checkpoint of the chain",
}
_NOTE_LINES: Final = 3
_HASH: Final = re.compile("[0-9a-f]{64}")
_REPEATED: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE})
_PROXY_ERRORS: Final = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})

GetToken = Callable[[bool], str]
"""Function that returns a bearer token, and is called before each request.

Its argument is True if the service has rejected the last token, so that a new one is necessary.
"""


class SignedInService(NamedTuple):
    """Service at which the user is signed in.

    Attributes:
        url: address of the service.
        get_token: returns a bearer token for the service.
    """

    url: str
    get_token: GetToken


class FetchError(Exception):
    """The audit chain could not be downloaded.

    Args:
        reason: cause of the failure, for the user.
        status: HTTP status of the service; 0 if the service did not reply.
        exit_status: exit status of ``oi audit fetch``: 1 refused, 2 wrong usage, 3 not reachable.
    """

    def __init__(self, reason: str, status: int = 0, *, exit_status: int = 1) -> None:
        super().__init__(reason)
        self.status = status
        self.exit_status = exit_status


class _TemporaryError(FetchError):
    """A request failed for a reason that can be temporary, so that a repetition can succeed.

    Args:
        reason: as for `FetchError`.
        status: as for `FetchError`.
        exit_status: as for `FetchError`.
        retry_after: seconds to wait before another attempt; None if the service named no time.
    """

    def __init__(self, reason: str, status: int = 0, *, exit_status: int = 1, retry_after: float | None = None) -> None:
        super().__init__(reason, status, exit_status=exit_status)
        self._retry_after = retry_after

    def find_delay_seconds(self, attempt: int) -> float | None:
        """Return the seconds to wait before the next attempt; None if the request must not be repeated.

        ``attempt`` is the number of the failed attempt, from 1.
        """
        seconds = 2.0 ** (attempt - 1) if self._retry_after is None else self._retry_after
        return seconds if attempt < MAX_ATTEMPTS and seconds <= MAX_WAIT_SECONDS else None


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Result of the download of an audit chain.

    Attributes:
        count: number of records in the export.
        output: path of the export: the requested path, with the suffix ``.new`` if there are contradictions.
        checkpoint: message about the checkpoint file, for the user.
        contradictions: descriptions of contradictions between the downloaded records or checkpoint and earlier files.
    """

    count: int
    output: Path
    checkpoint: str
    contradictions: Sequence[str]


class _FetchedCheckpoint(NamedTuple):
    """Newest signed checkpoint of a chain, if the service has one.

    Attributes:
        signed_note: text of the checkpoint; empty if there is none.
        missing_reason: reason why there is no checkpoint; empty if there is one.
    """

    signed_note: str
    missing_reason: str


class _RecordPage(NamedTuple):
    """One page of the records in a range of sequence numbers.

    Attributes:
        records: records of the page, newest first.
        has_more: whether the range contains further records.
    """

    records: list[Any]
    has_more: bool


class _JsonReply(NamedTuple):
    """Reply of the service.

    Attributes:
        body: JSON value of the body.
        has_more_header: value of the header ``x-provenance-has-more``; empty if the reply has none.
    """

    body: Any
    has_more_header: str


@dataclass(frozen=True, slots=True)
class _UnverifiedCheckpoint:
    """Origin (name of the chain), size and Merkle root of a signed checkpoint; the signature is not verified."""

    origin: str
    size: int
    root: bytes


@dataclass(slots=True)
class _RecordDigests:
    """Digests and hashes of the downloaded records of an audit chain, in the order of the chain.

    Attributes:
        digests: a digest of each whole record.
        leaves: ``Hash`` of each record, 32 bytes; None if a record has no valid one.
    """

    digests: list[bytes] = field(default_factory=list)
    leaves: list[bytes | None] = field(default_factory=list)

    def add_record(self, record: Any) -> None:
        """Add the next record of the chain."""
        stored = record.get("Hash") if isinstance(record, dict) else None
        is_hash = isinstance(stored, str) and _HASH.fullmatch(stored)
        self.digests.append(_compute_record_digest(record))
        self.leaves.append(bytes.fromhex(str(stored)) if is_hash else None)

    def matches_checkpoint(self, checkpoint: _UnverifiedCheckpoint) -> bool:
        """Return whether the first n records have the Merkle root of a checkpoint, which covers n records."""
        covered = self.leaves[: checkpoint.size]
        leaves = [leaf for leaf in covered if leaf is not None]
        if len(leaves) < checkpoint.size:
            return False
        tree = CompactRange()
        tree.append(leaves)
        return tree.compute_root() == checkpoint.root


def build_checkpoint_path(export_path: Path) -> Path:
    """Return the path of the file for the signed checkpoint that belongs to an export."""
    return export_path.with_name(f"{export_path.name}.checkpoint")


def download_chain_and_checkpoint(
    url: str, get_token: GetToken, target: str, scope_key: str, output_path: Path
) -> FetchResult:
    """Download an audit chain into one file, oldest record first, and its newest signed checkpoint into a second file.

    The checkpoint is requested first, so that the records cover it. An existing checkpoint is not replaced if the
    service returns no checkpoint or a smaller one: an attacker who truncates the chain may have removed checkpoints,
    too. If the service contradicts the existing files, these are evidence: they stay unchanged, and the new files get
    the suffix ``.new``.

    Args:
        url: address of the service.
        get_token: returns a bearer token with the access right Workspace.Provenance.Read.
        target: container of the chain.
        scope_key: scope of the chain, such as ``line-1``; empty for a chain of the whole workspace.
        output_path: path of the export, which is created when the download is complete.

    Raises:
        FetchError: the service rejects the request, cannot be reached or returns something else than records; the
            token has invalid characters; or the address contains a user name, or is neither https nor http to this
            computer.
    """
    try:
        check_address_protects_credentials(url)
    except ValueError as error:
        raise FetchError(str(error), exit_status=_WRONG_USAGE) from None
    checkpoint = _fetch_checkpoint(url, get_token, _build_chain_query_parameters(target, scope_key))
    contradictions = []
    with create_draft_file(output_path) as draft:
        downloaded = _write_records_and_compute_digests(
            _iterate_downloaded_records(url, get_token, target, scope_key), draft
        )
        while contradiction := _describe_contradiction_or_empty(downloaded, checkpoint.signed_note, output_path):
            contradictions.append(contradiction)
            output_path = output_path.with_name(f"{output_path.name}.new")
        draft.replace(output_path)
    message = _save_checkpoint_and_describe_result(checkpoint, build_checkpoint_path(output_path))
    return FetchResult(len(downloaded.digests), output_path, message, contradictions)


def _write_records_and_compute_digests(records: Iterator[Any], path: Path) -> _RecordDigests:
    """Write records to a file as a JSON array, one record on each line; return their digests for later comparisons."""
    downloaded = _RecordDigests()
    with path.open("w", encoding="utf-8") as file:
        for record in records:
            file.write((",\n" if downloaded.digests else "[") + json.dumps(record, ensure_ascii=False))
            downloaded.add_record(record)
        file.write("]\n" if downloaded.digests else "[]\n")
        file.flush()
        os.fsync(file.fileno())
    return downloaded


def _describe_contradiction_or_empty(downloaded: _RecordDigests, signed_note: str, export_path: Path) -> str:
    """Describe how downloaded records or their checkpoint contradict an earlier export or its checkpoint.

    Return an empty string if they agree or there are no earlier files.
    """
    path = build_checkpoint_path(export_path)
    before, after = (
        _parse_checkpoint_or_none(_read_saved_checkpoint_or_empty(path)),
        _parse_checkpoint_or_none(signed_note),
    )
    if before is not None:
        if after is not None and after.origin != before.origin:
            return f"the checkpoint in {path} belongs to {before.origin}, that of the service to {after.origin}"
        if len(downloaded.leaves) < before.size:
            received = format_count(len(downloaded.leaves), "record")
            return f"the service has {received}, but the checkpoint in {path} covers {before.size}"
        if not downloaded.matches_checkpoint(before):
            covered = format_count(before.size, "record")
            return f"the checkpoint of {covered} in {path} was made for other records than the service has"
        if after is not None and not downloaded.matches_checkpoint(after):
            covered = format_count(after.size, "record")
            return f"the service's checkpoint of {covered} was made for other records than it returned"
    return _describe_changed_record_or_empty(downloaded, export_path)


def _describe_changed_record_or_empty(downloaded: _RecordDigests, export_path: Path) -> str:
    """Describe the first record of an earlier export that the service changed or no longer has; empty if none."""
    try:
        content = export_path.read_bytes()
    except FileNotFoundError:
        return ""
    try:
        records = (
            json.loads(content.decode("utf-8-sig"), parse_int=parse_integer_or_exact_float) if content.strip() else []
        )
    except (ValueError, RecursionError):
        records = None
    if not isinstance(records, list):
        return f"{export_path} is not an export, so the records of the service cannot be compared with it"
    for number, record in enumerate(records):
        if number == len(downloaded.digests):
            return f"the service has {format_count(number, 'record')}, but {export_path} has {len(records)}"
        if _compute_record_digest(record) != downloaded.digests[number]:
            return f"record {number + 1} in {export_path} differs from that of the service"
    return ""


def _compute_record_digest(record: Any) -> bytes:
    # Equality in Python would not distinguish 1 from true.
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).digest()


def _build_chain_query_parameters(target: str, scope_key: str) -> dict[str, Any]:
    return {"target": target} | ({"scopeKey": scope_key} if scope_key else {})


def _fetch_checkpoint(url: str, get_token: GetToken, chain_parameters: dict[str, Any]) -> _FetchedCheckpoint:
    """Return the newest signed checkpoint of a chain, or the reason why there is none."""
    try:
        body = _fetch_reply_with_retries(url, get_token, "checkpoint", chain_parameters).body
    except FetchError as error:
        if error.status in _NO_NOTE:
            return _FetchedCheckpoint("", _NO_NOTE[HTTPStatus(error.status)])
        raise
    note = body.get("signedNote") if isinstance(body, dict) else None
    if not isinstance(note, str) or _parse_checkpoint_or_none(note) is None:
        raise FetchError("the reply of the service is not a checkpoint")
    return _FetchedCheckpoint(note, "")


def _save_checkpoint_and_describe_result(fetched: _FetchedCheckpoint, path: Path) -> str:
    """Write a checkpoint to a file, and return a message for the user.

    Write nothing if the service has no checkpoint, if the checkpoint in the file covers more records, or if it covers
    as many records and has a signature that the new one lacks.

    Args:
        fetched: checkpoint of the service, which must agree with the one in the file.
        path: path of the file.
    """
    note, before = fetched.signed_note, _read_saved_checkpoint_or_empty(path)
    earlier, newest = _parse_checkpoint_or_none(before), _parse_checkpoint_or_none(note)
    if newest is None:
        outcome = f"the existing checkpoint in {path} is unchanged" if before else "no checkpoint was saved"
        return f"{fetched.missing_reason}; {outcome}"
    if earlier is not None and earlier.size > newest.size:
        covered = format_count(newest.size, "record")
        return f"the checkpoint of the service has {covered}; {path} still has the one of {earlier.size}"
    if earlier is not None and earlier.size == newest.size and not set(before.split("\n")) <= set(note.split("\n")):
        return f"the checkpoint of the service lacks a signature that the one in {path} has, which is unchanged"
    with create_draft_file(path) as draft:
        draft.write_text(note, encoding="utf-8", newline="")
        draft.replace(path)
    return f"checkpoint of {format_count(newest.size, 'record')} in {path}"


def _read_saved_checkpoint_or_empty(path: Path) -> str:
    """Return the text of a checkpoint file; empty if it does not exist."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _parse_checkpoint_or_none(note: str) -> _UnverifiedCheckpoint | None:
    """Parse a signed checkpoint, without verification; return None if the text is not a checkpoint."""
    lines = note.split("\n")
    if len(lines) <= _NOTE_LINES:
        return None
    origin, size, root = lines[:_NOTE_LINES]
    if not (size.isascii() and size.isdigit() and len(size) <= len(str(LAST_SEQUENCE)) and int(size)):
        return None
    try:
        return _UnverifiedCheckpoint(origin, int(size), base64.b64decode(root, validate=True))
    except ValueError:
        return None


def _iterate_downloaded_records(url: str, get_token: GetToken, target: str, scope_key: str) -> Iterator[Any]:
    """Yield the records of a chain in order; request ranges of sequence numbers, whose content never changes.

    The start of the next range is computed and never read from a record, because a damaged record may have any
    RecordID.
    """
    chain = _build_chain_query_parameters(target, scope_key)
    first, width = 1, PAGE
    while first <= LAST_SEQUENCE:
        following = first + width
        query = {**chain, "fromSequence": first, "toSequence": following - 1, "limit": PAGE}
        page, more = _fetch_page(url, get_token, query)
        is_end = False
        if not more and len(page) < width:
            is_end = not _has_records_from(url, get_token, chain, following)
            if not is_end:
                # Records that were appended after the first reply complete the range, unless the chain has a gap.
                page, more = _fetch_page(url, get_token, query)
        if more and width > 1:
            # The page was limited by its size, or the range was widened in a gap.
            width //= 2
            continue
        if more:
            raise FetchError(f"the service did not return record {first}")
        yield from reversed(page)
        if is_end:
            return
        first = following
        # A gap may have any length; the verifier reports it.
        width = PAGE if page else width * 2


def _has_records_from(url: str, get_token: GetToken, chain_parameters: dict[str, Any], first_sequence: int) -> bool:
    """Return whether a chain has records from a sequence number on."""
    return first_sequence <= LAST_SEQUENCE and any(
        _fetch_page(url, get_token, {**chain_parameters, "fromSequence": first_sequence, "limit": 1})
    )


def _fetch_page(url: str, get_token: GetToken, query: dict[str, Any]) -> _RecordPage:
    """Return one page of the records in a range, newest first, and whether the range contains further records."""
    page, more = _fetch_reply_with_retries(url, get_token, "events/query", query)
    if not isinstance(page, list) or more not in {"true", "false"}:
        raise FetchError("the reply of the service does not contain records")
    return _RecordPage(page, more == "true")


def _fetch_reply_with_retries(url: str, get_token: GetToken, path: str, query: dict[str, Any]) -> _JsonReply:
    """Send a request to the service and return the reply.

    A request that is rejected with status 429, 502 or 503, or whose connection is lost, is repeated after a pause. A
    line on standard error announces each repetition.
    """
    address = f"{url.rstrip('/')}/oi-api/provenance/{path}?{urllib.parse.urlencode(query)}"
    attempt = 1
    while True:
        try:
            return _send_with_token(address, get_token)
        except _TemporaryError as error:
            delay = error.find_delay_seconds(attempt)
            if delay is None:
                raise
            sys.stderr.write(f"note: {escape_controls(str(error))}; next attempt in {delay:.0f} s\n")
        sleep(delay)
        attempt += 1


def _send_with_token(address: str, get_token: GetToken) -> _JsonReply:
    """Send a request with a token; if the service rejects the token, send the request once more with a new token."""
    token = get_token(False)
    try:
        return _send_once(address, token)
    except FetchError as error:
        renewed = get_token(True) if error.status == HTTPStatus.UNAUTHORIZED else token
        if renewed == token:
            raise
    return _send_once(address, renewed)


def _send_once(address: str, token: str) -> _JsonReply:
    """Send a request, without repetition, and return the reply."""
    if not (token.isascii() and token.isprintable()):
        # An error of the HTTP library would print the token.
        raise FetchError("the token contains invalid characters")
    try:
        request = urllib.request.Request(  # noqa: S310  checked by the caller
            address, headers={"Authorization": f"Bearer {token}"}
        )
        with _get_opener(address).open(request, timeout=TIMEOUT_SECONDS) as reply:
            body = json.loads(reply.read(), parse_int=parse_integer_or_exact_float)
            return _JsonReply(body, reply.headers.get("x-provenance-has-more", ""))
    except urllib.error.HTTPError as error:
        with error:
            raise _build_fetch_error(error) from None
    except (OSError, http.client.IncompleteRead) as error:
        reason = f"cannot reach the service: {error}"
        if isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError):
            raise FetchError(reason, exit_status=_UNREACHABLE) from None
        raise _TemporaryError(reason, exit_status=_UNREACHABLE) from None
    except (ValueError, RecursionError, http.client.HTTPException) as error:
        raise FetchError(f"the service returned an invalid reply: {error}") from None


def _get_opener(address: str) -> urllib.request.OpenerDirector:
    """Return the URL opener for an address; it uses the proxy that the environment variables name for the address.

    Raises:
        FetchError: the proxy is a SOCKS proxy. The standard library does not support SOCKS, and would send HTTP to it.
    """
    proxy = find_proxy_url(address)
    if proxy is not None and urllib.parse.urlsplit(proxy).scheme.startswith("socks"):
        # The address of the proxy may contain a password.
        reason = "`oi audit fetch` cannot use a SOCKS proxy; set HTTPS_PROXY to an HTTP proxy"
        raise FetchError(reason, exit_status=_UNREACHABLE)
    return _build_opener(urllib.parse.urlsplit(address).scheme, proxy)


@cache
def _build_opener(scheme: str, proxy: str | None) -> urllib.request.OpenerDirector:
    # Each new opener would load the certificates of all trusted authorities, which takes longer than a request.
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({} if proxy is None else {scheme: proxy}), _RedirectRejection()
    )


class _RedirectRejection(urllib.request.HTTPRedirectHandler):
    """Treats redirects as error replies, because only the address of the service is trusted."""

    def http_error_302(self, *_: Any, **__: Any) -> None:
        """Return None, so that the reply becomes an error, and the value of ``Location`` is not interpreted."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _build_fetch_error(error: urllib.error.HTTPError) -> FetchError:
    """Build the error for an error reply of the service, or of a proxy in front of it.

    A reply 502, 503 or 504 without an error code is from a proxy, so the service counts as unreachable.
    """
    if HTTPStatus.MULTIPLE_CHOICES <= error.code < HTTPStatus.BAD_REQUEST:
        return FetchError(describe_redirect(error.url, error.headers.get("Location", "")), error.code)
    problem = _read_problem_document_or_empty(error)
    detail = problem.get("detail")
    shown = f": {detail}" if isinstance(detail, str) and detail.isprintable() else ""
    reason = f"the service returned status {error.code}{shown}"
    exit_status = _UNREACHABLE if error.code in _PROXY_ERRORS and not problem.get("code") else 1
    if error.code in _REPEATED:
        retry_after = parse_retry_after_seconds(error.headers.get("Retry-After", ""), error.headers.get("Date", ""))
        return _TemporaryError(reason, error.code, exit_status=exit_status, retry_after=retry_after)
    return FetchError(reason, error.code, exit_status=exit_status)


def _read_problem_document_or_empty(error: urllib.error.HTTPError) -> dict[str, Any]:
    """Return the problem document of an error reply; empty if the reply has none."""
    try:
        problem = json.loads(error.read(_MAX_PROBLEM_BYTES))
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return {}
    return problem if isinstance(problem, dict) else {}
