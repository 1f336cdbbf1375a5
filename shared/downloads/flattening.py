"""The leaves of payloads.

A leaf is every place that holds no object, or an empty one: a scalar, null, or an array, which stays whole.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from shared.errors import Kind, WorkspaceError
from shared.telemetry.json_text import parse, serialise

MAX_LEAVES: Final = 5_000
MAX_DEPTH: Final = 32
"""Objects nested deeper stay JSON text."""

ROOT: Final[tuple[str, ...]] = ()

type Path = tuple[str, ...]
"""The keys that lead from the payload to a value."""


def check_column_count(paths: Collection[Path]) -> None:
    """Return when so many leaves make a CSV file.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    if len(paths) > MAX_LEAVES:
        detail = f"The payloads have over {MAX_LEAVES} different keys, too many for columns; take jsonl or parquet."
        raise WorkspaceError(Kind.UNPROCESSABLE, "DOWNLOAD_TOO_WIDE", detail)


def find_parent_objects(paths: Iterable[Path]) -> set[Path]:
    """Return the objects that lead to some leaves."""
    return {ROOT} | {path[:length] for path in paths for length in range(1, len(path))}


WIDE: Final = 256
"""Paths from which on payloads are quicker taken apart one by one."""

PIECE_BYTES: Final = 1024 * 1024
"""Of payloads that DuckDB parses at a time: a list of short numbers takes some 24 times its text, for each function."""

_UNADDRESSABLE: Final = {"": "\ufdd0", "*": "\ufdd1"}
"""Keys that DuckDB's paths cannot name, and the Unicode noncharacters that stand for them in here."""
_RESTORED: Final = {stand_in: key for key, stand_in in _UNADDRESSABLE.items()}


class Flattener:
    """Takes payloads apart by DuckDB's JSON functions; one thread, no files, no network.

    Every method takes payloads as compact JSON texts of objects without duplicate keys.
    """

    def __init__(self) -> None:
        limits: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "memory_limit": "256MB",
            "enable_external_access": False,
        }
        self._engine = duckdb.connect(":memory:", config=limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._engine.close()

    def leaves(self, payloads: pa.Array) -> frozenset[Path]:
        """Return the paths of all leaves in some payloads.

        Raises:
            WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
        """
        found: set[Path] = set()
        objects: set[Path] = {ROOT}
        for _ in range(MAX_DEPTH):
            inside = self._members(payloads, sorted(objects))
            if not inside:
                return frozenset(found)
            if len(inside) > WIDE:
                return find_leaves_singly(payloads)
            leaves, objects = self._told_apart(payloads, sorted(inside))
            found |= leaves
            check_column_count(found | objects)
        return frozenset(found | objects)

    def values(self, payloads: pa.Array, paths: Sequence[Path]) -> pa.Array | None:
        """Return for each payload the list of texts at some leaves, in their order; None when there are other leaves.

        Strings stand without quotes, null and what is not there as null, everything else as JSON text.

        Args:
            payloads: JSON texts.
            paths: of the leaves, each once.
        """
        known, objects = frozenset(paths), find_parent_objects(paths)
        if len(paths) > WIDE or not objects.isdisjoint(known):
            return read_values_singly(payloads, paths)
        if not self._keys_are_known(payloads, known, objects):
            return None
        values = self._texts(payloads, paths)
        # An object where a scalar stood so far, or a string that looks like one.
        braced = pc.any(pc.starts_with(values.flatten(), "{")).as_py()
        return values if not braced or self.leaves(payloads) <= known else None

    def _keys_are_known(self, payloads: pa.Array, paths: frozenset[Path], objects: set[Path]) -> bool:
        in_order = sorted(objects)
        for [lists] in self._distinct(payloads, "json_keys(payload, $1)", in_order):
            for path, keys in zip(in_order, lists, strict=True):
                if keys == [] and path != ROOT and path not in paths:
                    return False
                if not _below(path, keys) <= paths | objects:
                    return False
        return True

    def _members(self, payloads: pa.Array, objects: Sequence[Path]) -> set[Path]:
        rows = self._distinct(payloads, "json_keys(payload, $1)", objects)
        return {
            member
            for [lists] in rows
            for path, keys in zip(objects, lists, strict=True)
            for member in _below(path, keys)
        }

    def _told_apart(self, payloads: pa.Array, paths: Sequence[Path]) -> tuple[set[Path], set[Path]]:
        """Return which paths are leaves somewhere, and which are objects with members somewhere."""
        leaves: set[Path] = set()
        objects: set[Path] = set()
        for types, lists in self._distinct(payloads, "json_type(payload, $1), json_keys(payload, $1)", paths):
            for path, kind, keys in zip(paths, types, lists, strict=True):
                if kind is not None:
                    (objects if kind == "OBJECT" and keys else leaves).add(path)
        return leaves, objects

    def _distinct(self, payloads: pa.Array, columns: str, paths: Sequence[Path]) -> list[Any]:
        self._engine.register("rows", _table(payloads, renamed=_need_renaming(paths)))
        addresses = [_address(path) for path in paths]
        return self._engine.execute(f"SELECT DISTINCT {columns} FROM rows", [addresses]).fetchall()  # noqa: S608  ours

    def _texts(self, payloads: pa.Array, paths: Sequence[Path]) -> pa.Array:
        renamed = _need_renaming(paths)
        self._engine.register("rows", _table(payloads, renamed=renamed))
        query = "SELECT json_extract_string(payload, $1) AS texts FROM rows"
        addresses = [_address(path) for path in paths]
        lists = self._engine.sql(query, params=[addresses]).to_arrow_table().column(0).combine_chunks()
        # Arrays stand whole, with the objects in them.
        return pa.ListArray.from_arrays(lists.offsets, _renamed(lists.values, _RESTORED)) if renamed else lists


def _need_renaming(paths: Iterable[Path]) -> bool:
    return any(key in _UNADDRESSABLE for path in paths for key in path)


def _table(payloads: pa.Array, *, renamed: bool) -> pa.Table:
    texts = _renamed(payloads, _UNADDRESSABLE) if renamed else payloads
    return pa.table({"payload": pa.chunked_array(_pieces(texts), pa.string())})


def _pieces(texts: pa.Array) -> Iterator[pa.Array]:
    if len(texts) < 2 or texts.nbytes <= PIECE_BYTES:  # noqa: PLR2004  one text cannot be halved
        yield texts
        return
    middle = len(texts) // 2
    yield from _pieces(texts.slice(0, middle))
    yield from _pieces(texts.slice(middle))


def _renamed(texts: pa.Array, names: Mapping[str, str]) -> pa.Array:
    for key, name in names.items():
        pattern = r'([{,])"' + key.replace("*", r"\*") + '":'
        texts = pc.replace_substring_regex(texts, pattern, rf'\1"{name}":')
    return texts


def _below(path: Path, keys: Iterable[str] | None) -> set[Path]:
    return {(*path, _RESTORED.get(key, key)) for key in keys or ()}


def _address(path: Path) -> str:
    """Return a path as DuckDB writes it."""
    keys = (_UNADDRESSABLE.get(key, key).replace("\\", "\\\\").replace('"', '\\"') for key in path)
    return "$" + "".join(f'."{key}"' for key in keys)


def find_leaves_singly(payloads: pa.Array) -> frozenset[Path]:
    """Return the paths of all leaves in some payloads.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    found: set[Path] = set()
    for members in _members(payloads):
        found.update(members)
        check_column_count(found)
    return frozenset(found)


def read_values_singly(payloads: pa.Array, paths: Sequence[Path]) -> pa.Array | None:
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
