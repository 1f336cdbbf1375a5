"""Pages a chain out of a running service into one export, with the standard library alone."""

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from shared.provenance.hash_rule import LAST_SEQUENCE, json_integer

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
        FetchError: the service refuses, cannot be reached, or answers something else than records; the token is none.
    """
    if not (token.isascii() and token.isprintable()):
        # Said here: an error of the HTTP library would show it.
        raise FetchError("the token has characters that no token has")
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
    """Give the records in order; windows of sequences are stable while others append.

    Where a window ends is counted here, never read from a record: somebody may have put any RecordID into one, and it
    is the verifier who is to find that. Each round moves on, or halves the window, or ends.
    """
    chain = {"target": target} | ({"scopeKey": scope_key} if scope_key else {})
    first, width = 1, PAGE
    while first <= LAST_SEQUENCE:
        page, more = _get(url, token, {**chain, "fromSequence": first, "toSequence": first + width - 1, "limit": PAGE})
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
            if not any(_get(url, token, {**chain, "fromSequence": first, "limit": 1})):
                return
            # A gap is for the verifier to find; it may be of any length.
            width *= 2


def _get(url: str, token: str, query: dict[str, Any]) -> tuple[list[Any], bool]:
    """Return the records of a page, newest first, and whether there are more in its window."""
    address = f"{url.rstrip('/')}/oi-api/provenance/events/query?{urllib.parse.urlencode(query)}"
    if urllib.parse.urlsplit(address).scheme not in {"http", "https"}:
        raise FetchError("the address of the service must start with https:// or http://")
    try:
        # Sent to this address alone: not to where a redirect leads.
        request = urllib.request.Request(address)  # noqa: S310  checked above
        request.add_unredirected_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:  # noqa: S310  checked above
            page = json.loads(reply.read(), parse_int=json_integer)
            more = reply.headers.get("x-provenance-has-more")
    except urllib.error.HTTPError as error:
        raise FetchError(f"the service answered {error.code}") from None
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise FetchError(f"the service cannot be read: {error}") from None
    if not isinstance(page, list) or more not in {"true", "false"}:
        raise FetchError("the service answered something else than records")
    return page, more == "true"
