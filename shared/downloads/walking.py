"""Payloads taken apart one by one.

That is for wide ones, whose every path DuckDB would look for among all keys, and for those in which a key leads to a
value in one and to an object in another.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from shared.downloads.leaves import MAX_DEPTH, Path, check_width
from shared.telemetry.json_text import parse, serialise


def leaves(payloads: pa.Array) -> frozenset[Path]:
    """Return the paths of all leaves in some payloads.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    found: set[Path] = set()
    for members in _members(payloads):
        found.update(members)
        check_width(found)
    return frozenset(found)


def values(payloads: pa.Array, paths: Sequence[Path]) -> pa.Array | None:
    """Return for each payload the list of texts at some leaves, in their order; None when there are other leaves.

    Strings stand without quotes, null and what is not there as null, everything else as JSON text.

    Args:
        payloads: JSON texts of objects.
        paths: of the leaves, each once.
    """
    places: Final = {path: place for place, path in enumerate(paths)}
    cells: list[str | None] = []
    for members in _members(payloads):
        row: list[str | None] = [None] * len(paths)
        for path, value in members.items():
            place = places.get(path)
            if place is None:
                return None
            row[place] = _text(value)
        cells += row
    offsets = pa.array(range(0, len(cells) + 1, len(paths)) if paths else [0] * (len(payloads) + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(cells, pa.string()))


def _members(payloads: pa.Array) -> Iterator[Mapping[Path, Any]]:
    for payload in payloads:
        members: dict[Path, Any] = {}
        _collect(parse(payload.as_buffer().to_pybytes()), (), members)
        yield members


def _collect(value: Mapping[str, Any], at: Path, members: dict[Path, Any]) -> None:
    for key, member in value.items():
        path = (*at, key)
        if member and isinstance(member, dict) and len(path) < MAX_DEPTH:
            _collect(member, path, members)
        else:
            members[path] = member


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if type(value) is int else serialise(value).decode()
