"""Payloads, JSON texts, taken apart into the values at their leaves, a column of rows at a time.

A leaf is every place in a payload that holds no object, or an empty one: a scalar, null, or an array, which stays
whole.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from shared.errors import Kind, WorkspaceError

MAX_LEAVES: Final = 5_000
MAX_DEPTH: Final = 32
"""Objects nested deeper stay JSON text."""

type Path = tuple[str, ...]
"""The keys that lead from the payload to a value."""

_ROOT: Final[Path] = ()
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
        objects: set[Path] = {_ROOT}
        for _ in range(MAX_DEPTH):
            inside = self._members(payloads, sorted(objects))
            if not inside:
                return frozenset(found)
            leaves, objects = self._told_apart(payloads, sorted(inside))
            found |= leaves
            check_width(found | objects)
        return frozenset(found | objects)

    def values(self, payloads: pa.Array, paths: Sequence[Path]) -> pa.Array:
        """Return for each payload the list of texts at some leaves, in their order.

        Strings stand without quotes, null and what is not there as null, everything else as JSON text.

        Args:
            payloads: JSON texts.
            paths: all leaves that the payloads have, or more.
        """
        inner = _inner(paths)
        if not inner.isdisjoint(paths):
            return self._lists(payloads, _one_by_one(inner, paths), paths, [_address(path) for path in paths])
        return self._lists(payloads, "json_extract_string(payload, $1)", paths, [[_address(path) for path in paths]])

    def complete(self, payloads: pa.Array, paths: Collection[Path], values: pa.Array) -> bool:
        """Return whether payloads have no other leaves than these, whose values were just taken; quick where so."""
        if not self._keys_are_known(payloads, frozenset(paths)):
            return False
        # An object where a scalar stood so far, or a string that looks like one.
        braced = pc.any(pc.starts_with(values.flatten(), "{")).as_py()
        return not braced or self.leaves(payloads) <= frozenset(paths)

    def _keys_are_known(self, payloads: pa.Array, paths: frozenset[Path]) -> bool:
        inner = _inner(paths)
        objects = sorted(inner)
        for [lists] in self._distinct(payloads, "json_keys(payload, $1)", objects):
            for path, keys in zip(objects, lists, strict=True):
                if keys == [] and path != _ROOT and path not in paths:
                    return False
                if not _below(path, keys) <= paths | inner:
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

    def _lists(self, payloads: pa.Array, column: str, paths: Sequence[Path], parameters: list[object]) -> pa.Array:
        renamed = _need_renaming(paths)
        self._engine.register("rows", _table(payloads, renamed=renamed))
        query = f"SELECT {column} AS texts FROM rows"  # noqa: S608  ours
        lists = self._engine.sql(query, params=parameters).to_arrow_table().column(0).combine_chunks()
        # Arrays stand whole, with the objects in them.
        return pa.ListArray.from_arrays(lists.offsets, _renamed(lists.values, _RESTORED)) if renamed else lists


def check_width(paths: Collection[Path]) -> None:
    """Return when so many leaves make a CSV file.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    if len(paths) > MAX_LEAVES:
        detail = f"The payloads have over {MAX_LEAVES} different keys, too many for columns; take jsonl or parquet."
        raise WorkspaceError(Kind.UNPROCESSABLE, "DOWNLOAD_TOO_WIDE", detail)


def _need_renaming(paths: Iterable[Path]) -> bool:
    return any(key in _UNADDRESSABLE for path in paths for key in path)


def _table(payloads: pa.Array, *, renamed: bool) -> pa.Table:
    return pa.table({"payload": _renamed(payloads, _UNADDRESSABLE) if renamed else payloads})


def _renamed(texts: pa.Array, names: Mapping[str, str]) -> pa.Array:
    for key, name in names.items():
        pattern = r'([{,])"' + key.replace("*", r"\*") + '":'
        texts = pc.replace_substring_regex(texts, pattern, rf'\1"{name}":')
    return texts


def _below(path: Path, keys: Iterable[str] | None) -> set[Path]:
    return {(*path, _RESTORED.get(key, key)) for key in keys or ()}


def _inner(paths: Iterable[Path]) -> set[Path]:
    """Return the objects that lead to some leaves."""
    return {_ROOT} | {path[:length] for path in paths for length in range(1, len(path))}


def _address(path: Path) -> str:
    """Return a path as DuckDB writes it."""
    keys = (_UNADDRESSABLE.get(key, key).replace("\\", "\\\\").replace('"', '\\"') for key in path)
    return "$" + "".join(f'."{key}"' for key in keys)


def _one_by_one(inner: Collection[Path], paths: Sequence[Path]) -> str:
    """Return the expression for paths of which some are leaves in one row and objects in another."""
    return f"[{', '.join(_text(f'${number}', mixed=path in inner) for number, path in enumerate(paths, 1))}]"


def _text(address: str, *, mixed: bool) -> str:
    text = f"json_extract_string(payload, {address}::VARCHAR)"
    if not mixed:
        return text
    return f"CASE WHEN len(json_keys(payload, {address}::VARCHAR)) > 0 THEN NULL ELSE {text} END"
