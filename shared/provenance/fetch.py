"""Pages a chain out of a running service into one export, and keeps its newest checkpoint; standard library alone."""

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from shared.provenance.hash_rule import LAST_SEQUENCE, parse_json_integer

PAGE: Final = 1_000
TIMEOUT_SECONDS: Final = 120


_NO_NOTE: Final = {
    HTTPStatus.NOT_FOUND: "the service has no signed checkpoint of the chain yet",
    HTTPStatus.CONFLICT: "the service does not trust its newest checkpoint of the chain",
}
_NOTE_LINES: Final = 3


class FetchError(Exception):
    """The service did not give the chain; the text says why.

    Args:
        reason: in words.
        status: that the service answered with, 0 when that is not it.
    """

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What came of it.

    Attributes:
        count: records in the export.
        checkpoint: in words, which checkpoint is kept beside it.
    """

    count: int
    checkpoint: str


def checkpoint_path(export: Path) -> Path:
    """Return where the newest signed checkpoint of an exported chain is kept."""
    return export.with_name(f"{export.name}.checkpoint")


def fetch(url: str, token: str, target: str, scope_key: str, out: Path) -> FetchResult:
    """Write a chain into one file, oldest first, and its newest signed checkpoint into the file beside it.

    The checkpoint is asked for first, so that the records cover it. One that is kept there from before stays when the
    service gives none, or one of fewer records: whoever cut the chain may have cut the checkpoints, too.

    Args:
        url: of the service.
        token: a bearer token with Workspace.Provenance.Read.
        target: the container.
        scope_key: the scope of a domain chain, else empty.
        out: the file; it appears when it is whole.

    Raises:
        FetchError: the service refuses, cannot be reached, or answers something else than records; the token is none.
    """
    if not (token.isascii() and token.isprintable()):
        # Said here: an error of the HTTP library would show it.
        raise FetchError("the token has characters that no token has")
    note, why_none = _fetch_note(url, token, _chain_query(target, scope_key))
    count = 0
    draft = out.with_name(f"{out.name}.part")
    with draft.open("w", encoding="utf-8") as file:
        for record in _fetch_records(url, token, target, scope_key):
            file.write((",\n" if count else "[") + json.dumps(record, ensure_ascii=False))
            count += 1
        file.write("]\n" if count else "[]\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(out)
    return FetchResult(count, _save_note(note, why_none, checkpoint_path(out)))


def _chain_query(target: str, scope_key: str) -> dict[str, Any]:
    return {"target": target} | ({"scopeKey": scope_key} if scope_key else {})


def _fetch_note(url: str, token: str, chain: dict[str, Any]) -> tuple[str, str]:
    """Return the newest signed note of a chain, or why there is none."""
    try:
        reply, _ = _request(url, token, "checkpoint", chain)
    except FetchError as error:
        if error.status in _NO_NOTE:
            return "", _NO_NOTE[HTTPStatus(error.status)]
        raise
    note = reply.get("signedNote") if isinstance(reply, dict) else None
    if not isinstance(note, str) or not _parse_size(note):
        raise FetchError("the service answered something else than a checkpoint")
    return note, ""


def _save_note(note: str, why_none: str, path: Path) -> str:
    """Write the note unless the existing file has a larger checkpoint of the same chain; return a summary."""
    before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    if not note:
        return f"{why_none}; {f'the one from before stays in {path}' if before else 'none is kept'}"
    size, size_before = _parse_size(note), _parse_size(before)
    if before.partition("\n")[0] == note.partition("\n")[0] and size_before > size:
        return f"the service gives a checkpoint of {size} records; the one of {size_before} stays in {path}"
    draft = path.with_name(f"{path.name}.part")
    draft.write_text(note, encoding="utf-8", newline="")
    draft.replace(path)
    return f"checkpoint of {size} records in {path}"


def _parse_size(note: str) -> int:
    """Return how many records a note says it covers, 0 when it is no checkpoint; nothing is believed of it here."""
    lines = note.split("\n")
    said = lines[1] if len(lines) > _NOTE_LINES else ""
    return int(said) if said.isascii() and said.isdigit() and len(said) <= len(str(LAST_SEQUENCE)) else 0


def _fetch_records(url: str, token: str, target: str, scope_key: str) -> Iterator[Any]:
    """Give the records in order; windows of sequences are stable while others append.

    Where a window ends is counted here, never read from a record: somebody may have put any RecordID into one, and it
    is the verifier who is to find that. Each round moves on, or halves the window, or ends.
    """
    chain = _chain_query(target, scope_key)
    first, width = 1, PAGE
    while first <= LAST_SEQUENCE:
        page, more = _fetch_page(
            url, token, {**chain, "fromSequence": first, "toSequence": first + width - 1, "limit": PAGE}
        )
        if more and width > 1:
            # Cut short for its size, or a window that was made wider in a gap.
            width //= 2
            continue
        if more:
            raise FetchError(f"the service does not give the record {first}")
        yield from reversed(page)
        first += width
        if page:
            width = PAGE
        else:
            if not any(_fetch_page(url, token, {**chain, "fromSequence": first, "limit": 1})):
                return
            # A gap is for the verifier to find; it may be of any length.
            width *= 2


def _fetch_page(url: str, token: str, query: dict[str, Any]) -> tuple[list[Any], bool]:
    """Return the records of a page, newest first, and whether there are more in its window."""
    page, more = _request(url, token, "events/query", query)
    if not isinstance(page, list) or more not in {"true", "false"}:
        raise FetchError("the service answered something else than records")
    return page, more == "true"


def _request(url: str, token: str, path: str, query: dict[str, Any]) -> tuple[Any, str]:
    """Return what a provenance route answers, and what it says about more of it."""
    address = f"{url.rstrip('/')}/oi-api/provenance/{path}?{urllib.parse.urlencode(query)}"
    if urllib.parse.urlsplit(address).scheme not in {"http", "https"}:
        raise FetchError("the address of the service must start with https:// or http://")
    try:
        # Sent to this address alone: not to where a redirect leads.
        request = urllib.request.Request(address)  # noqa: S310  checked above
        request.add_unredirected_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:  # noqa: S310  checked above
            body = json.loads(reply.read(), parse_int=parse_json_integer)
            return body, reply.headers.get("x-provenance-has-more", "")
    except urllib.error.HTTPError as error:
        raise FetchError(f"the service answered {error.code}", error.code) from None
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise FetchError(f"the service cannot be read: {error}") from None
