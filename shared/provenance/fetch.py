"""Pages a chain out of a running service into one export, with the standard library alone."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from shared.provenance.hash_rule import json_integer, sequence_of

PAGE: Final = 1_000
TIMEOUT_SECONDS: Final = 120


class FetchError(Exception):
    """The service did not give the chain; the text says why."""


def fetch(url: str, token: str, target: str, scope_key: str, out: Path) -> int:
    """Write a chain into one file, oldest first, and return how many records it has.

    Args:
        url: of the service.
        token: a bearer token with Workspace.Provenance.Read.
        target: the container.
        scope_key: the scope of a domain chain, else empty.
        out: the file; it appears when it is whole.

    Raises:
        FetchError: the service refuses, cannot be reached, or answers something else than records.
    """
    count = 0
    draft = out.with_name(f"{out.name}.part")
    with draft.open("w", encoding="utf-8") as file:
        for record in _records(url, token, target, scope_key):
            file.write((",\n" if count else "[") + json.dumps(record, ensure_ascii=False))
            count += 1
        file.write("]\n" if count else "[]\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(out)
    return count


def _records(url: str, token: str, target: str, scope_key: str) -> Iterator[Any]:
    """Give the records in order; windows of sequences are stable while others append."""
    last = 0
    while True:
        window = {"target": target, "fromSequence": last + 1, "toSequence": last + PAGE, "limit": PAGE}
        # A page that was cut short for its size is newest first: what is missing are its oldest records.
        page = _get(url, token, window | ({"scopeKey": scope_key} if scope_key else {}))
        if not page:
            # An empty window is the end only if nothing stands beyond it; a gap is for the verifier to find.
            page = _beyond(url, token, target, scope_key, last)
            if not page:
                return
        while _first(page) > last + 1:
            earlier = {**window, "toSequence": _first(page) - 1} | ({"scopeKey": scope_key} if scope_key else {})
            more = _get(url, token, earlier)
            if not more:
                break
            page += more
        yield from reversed(page)
        last = _sequence(page[0])


def _beyond(url: str, token: str, target: str, scope_key: str, last: int) -> list[Any]:
    query = {"target": target, "fromSequence": last + 1, "limit": PAGE}
    return _get(url, token, query | ({"scopeKey": scope_key} if scope_key else {}))


def _first(page: list[Any]) -> int:
    return _sequence(page[-1])


def _sequence(record: Any) -> int:
    sequence = sequence_of(record.get("RecordID")) if isinstance(record, dict) else None
    if sequence is None:
        raise FetchError("the service answered something else than records")
    return sequence


def _get(url: str, token: str, query: dict[str, Any]) -> list[Any]:
    address = f"{url.rstrip('/')}/oi-api/provenance/events/query?{urllib.parse.urlencode(query)}"
    if urllib.parse.urlsplit(address).scheme not in {"http", "https"}:
        raise FetchError("the address of the service must start with https:// or http://")
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})  # noqa: S310  checked above
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:  # noqa: S310  checked above
            page = json.loads(reply.read(), parse_int=json_integer)
    except urllib.error.HTTPError as error:
        raise FetchError(f"the service answered {error.code}") from None
    except (OSError, ValueError) as error:
        raise FetchError(f"the service cannot be read: {error}") from None
    if not isinstance(page, list):
        raise FetchError("the service answered something else than records")
    return page
