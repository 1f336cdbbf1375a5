"""Flattening of JSON payloads: extracts the values at their leaves, for many rows at a time.

A leaf is a path whose value is not an object with properties: a scalar, null, an empty object, or an array. Arrays are
not divided further.

This module is separate from ``conversion``, which writes file formats.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from shared.errors import Kind, WorkspaceError
from shared.telemetry.json_text import parse_lossless_json, serialise_lossless_json

MAX_LEAVES: Final = 5_000
MAX_DEPTH: Final = 32
"""Maximum nesting of flattened objects; objects nested deeper remain JSON text."""

ROOT: Final[tuple[str, ...]] = ()

type KeyPath = tuple[str, ...]
"""Keys that lead from the root of a payload to a value."""


def require_allowed_column_count(paths: Collection[KeyPath]) -> None:
    """Check that the payloads do not have more different keys than a CSV file may have columns.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE`` if they have.
    """
    if len(paths) > MAX_LEAVES:
        detail = f"The payloads have more than {MAX_LEAVES} different keys, too many for columns; use jsonl or parquet."
        raise WorkspaceError(Kind.UNPROCESSABLE, "DOWNLOAD_TOO_WIDE", detail)


def find_parent_object_paths(paths: Iterable[KeyPath]) -> set[KeyPath]:
    """Return the paths of all JSON objects that contain the given leaves, including the root."""
    return {ROOT} | {path[:length] for path in paths for length in range(1, len(path))}


MAX_ENGINE_PATHS: Final = 256
"""Number of paths above which parsing payloads one by one in Python is faster than DuckDB."""

ENGINE_CHUNK_BYTES: Final = 1024 * 1024
"""Bytes of payloads that DuckDB parses at a time; lists of short numbers take 24 times their size in memory."""

_UNADDRESSABLE: Final = {"": "\ufdd0", "*": "\ufdd1"}
"""Keys that DuckDB's paths cannot name, and the Unicode noncharacters that replace them internally."""
_RESTORED: Final = {stand_in: key for key, stand_in in _UNADDRESSABLE.items()}


class Flattener:
    """Flattens payloads with DuckDB's JSON functions, in one thread, without access to files and network.

    All methods accept payloads as compact JSON texts of objects without duplicate keys.
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

    def find_leaf_paths(self, payloads: pa.Array) -> frozenset[KeyPath]:
        """Return the paths of all leaves (values that are not objects with properties) in any of the payloads.

        Raises:
            WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE`` if there are too many for the columns of a CSV file.
        """
        found: set[KeyPath] = set()
        objects: set[KeyPath] = {ROOT}
        for _ in range(MAX_DEPTH):
            inside = self._find_child_paths(payloads, sorted(objects))
            if not inside:
                return frozenset(found)
            if len(inside) > MAX_ENGINE_PATHS:
                return find_leaf_paths_one_by_one(payloads)
            leaves, objects = self._split_paths_into_leaves_and_objects(payloads, sorted(inside))
            found |= leaves
            require_allowed_column_count(found | objects)
        return frozenset(found | objects)

    def try_extract_values(self, payloads: pa.Array, paths: Sequence[KeyPath]) -> pa.Array | None:
        """For each payload, return the list of the texts at the given leaves.

        Return None if a payload has a leaf that is not in ``paths``.

        Strings are unquoted, null and missing values are null, all other values are JSON text.

        Args:
            payloads: JSON texts of objects.
            paths: distinct paths of the leaves.
        """
        known, objects = frozenset(paths), find_parent_object_paths(paths)
        if len(paths) > MAX_ENGINE_PATHS or not objects.isdisjoint(known):
            return try_extract_values_one_by_one(payloads, paths)
        values = self._extract_texts(payloads, paths)
        # The root object has no key.
        doubtful = _select_payloads_with_possibly_unknown_keys(payloads, values, len(known) + len(objects) - 1)
        if len(doubtful) and not self._has_only_known_keys(doubtful, known, objects):
            return None
        # Either an object in position of a scalar, or a string that looks like an object.
        braced = pc.any(pc.starts_with(values.flatten(), "{")).as_py()
        return values if not braced or self.find_leaf_paths(payloads) <= known else None

    def _has_only_known_keys(
        self, payloads: pa.Array, leaf_paths: frozenset[KeyPath], object_paths: set[KeyPath]
    ) -> bool:
        in_order = sorted(object_paths)
        for [lists] in self._query_distinct_values(payloads, "json_keys(payload, $1)", in_order):
            for path, keys in zip(in_order, lists, strict=True):
                if keys == [] and path != ROOT and path not in leaf_paths:
                    return False
                if not _build_child_paths(path, keys) <= leaf_paths | object_paths:
                    return False
        return True

    def _find_child_paths(self, payloads: pa.Array, object_paths: Sequence[KeyPath]) -> set[KeyPath]:
        rows = self._query_distinct_values(payloads, "json_keys(payload, $1)", object_paths)
        return {
            member
            for [lists] in rows
            for path, keys in zip(object_paths, lists, strict=True)
            for member in _build_child_paths(path, keys)
        }

    def _split_paths_into_leaves_and_objects(
        self, payloads: pa.Array, paths: Sequence[KeyPath]
    ) -> tuple[set[KeyPath], set[KeyPath]]:
        """Return the paths of leaves in any payload, and the paths of objects with properties in any payload.

        A leaf is a value that is not an object with properties. A path can be in both sets, because the values at this
        path can differ between payloads.
        """
        leaves: set[KeyPath] = set()
        objects: set[KeyPath] = set()
        for types, lists in self._query_distinct_values(
            payloads, "json_type(payload, $1), json_keys(payload, $1)", paths
        ):
            for path, kind, keys in zip(paths, types, lists, strict=True):
                if kind is not None:
                    (objects if kind == "OBJECT" and keys else leaves).add(path)
        return leaves, objects

    def _query_distinct_values(self, payloads: pa.Array, columns_sql: str, paths: Sequence[KeyPath]) -> list[Any]:
        self._engine.register("rows", _build_payload_table(payloads, rename_keys=_has_unaddressable_keys(paths)))
        addresses = [_to_duckdb_json_path(path) for path in paths]
        return self._engine.execute(f"SELECT DISTINCT {columns_sql} FROM rows", [addresses]).fetchall()  # noqa: S608  ours

    def _extract_texts(self, payloads: pa.Array, paths: Sequence[KeyPath]) -> pa.Array:
        renamed = _has_unaddressable_keys(paths)
        self._engine.register("rows", _build_payload_table(payloads, rename_keys=renamed))
        query = "SELECT json_extract_string(payload, $1) AS texts FROM rows"
        addresses = [_to_duckdb_json_path(path) for path in paths]
        lists = self._engine.sql(query, params=[addresses]).to_arrow_table().column(0).combine_chunks()
        # Arrays are not divided, so their objects still contain renamed keys.
        return pa.ListArray.from_arrays(lists.offsets, _rename_json_keys(lists.values, _RESTORED)) if renamed else lists


def _select_payloads_with_possibly_unknown_keys(payloads: pa.Array, values: pa.Array, key_count: int) -> pa.Array:
    """Return the payloads that may have a key outside the known paths; some of them may have no such key.

    The function counts keys, because listing the keys would take much longer. Each key ends with ``":``. A payload that
    has a value at each known leaf has all known keys. If it has more ``":`` than known keys, it has unknown keys, or
    one of its texts contains ``":``. If at least one payload has no value at a known leaf, all payloads are returned.

    Args:
        payloads: compact JSON texts of objects without duplicate keys.
        values: list of the texts at the known leaves for each payload.
        key_count: number of known keys, both of leaves and of objects.
    """
    if values.flatten().null_count:
        return payloads
    return payloads.filter(pc.not_equal(pc.count_substring(payloads, '":'), key_count))


def _has_unaddressable_keys(paths: Iterable[KeyPath]) -> bool:
    """Return whether a path contains a key that DuckDB's JSON paths cannot name: the empty key or ``*``."""
    return any(key in _UNADDRESSABLE for path in paths for key in path)


def _build_payload_table(payloads: pa.Array, *, rename_keys: bool) -> pa.Table:
    """Build the table that DuckDB queries; its column ``payload`` has the payloads in chunks of limited size.

    If ``rename_keys`` is True, keys that DuckDB's JSON paths cannot name are replaced by other keys.
    """
    texts = _rename_json_keys(payloads, _UNADDRESSABLE) if rename_keys else payloads
    return pa.table({"payload": pa.chunked_array(_split_texts_into_chunks(texts), pa.string())})


def _split_texts_into_chunks(texts: pa.Array) -> Iterator[pa.Array]:
    if len(texts) < 2 or texts.nbytes <= ENGINE_CHUNK_BYTES:  # noqa: PLR2004  one text cannot be halved
        yield texts
        return
    middle = len(texts) // 2
    yield from _split_texts_into_chunks(texts.slice(0, middle))
    yield from _split_texts_into_chunks(texts.slice(middle))


def _rename_json_keys(texts: pa.Array, new_names: Mapping[str, str]) -> pa.Array:
    for key, name in new_names.items():
        pattern = r'([{,])"' + key.replace("*", r"\*") + '":'
        texts = pc.replace_substring_regex(texts, pattern, rf'\1"{name}":')
    return texts


def _build_child_paths(parent_path: KeyPath, keys: Iterable[str] | None) -> set[KeyPath]:
    return {(*parent_path, _RESTORED.get(key, key)) for key in keys or ()}


def _to_duckdb_json_path(path: KeyPath) -> str:
    """Convert a key path to a JSON path in DuckDB's syntax, such as ``$."a"."b"``."""
    keys = (_UNADDRESSABLE.get(key, key).replace("\\", "\\\\").replace('"', '\\"') for key in path)
    return "$" + "".join(f'."{key}"' for key in keys)


def find_leaf_paths_one_by_one(payloads: pa.Array) -> frozenset[KeyPath]:
    """Return the same paths as :meth:`Flattener.find_leaf_paths`, but parse the payloads one by one in Python.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    found: set[KeyPath] = set()
    for members in _iterate_leaf_values_by_path(payloads):
        found.update(members)
        require_allowed_column_count(found)
    return frozenset(found)


def try_extract_values_one_by_one(payloads: pa.Array, paths: Sequence[KeyPath]) -> pa.Array | None:
    """Extract the same texts as :meth:`Flattener.try_extract_values`, but parse the payloads one by one in Python.

    Strings are unquoted, null and missing values are null, all other values are JSON text. Return None if a payload has
    a leaf that is not in ``paths``.

    Args:
        payloads: JSON texts of objects.
        paths: distinct paths of the values to extract.
    """
    positions: Final = {path: position for position, path in enumerate(paths)}
    cells: list[str | None] = []
    for members in _iterate_leaf_values_by_path(payloads):
        row: list[str | None] = [None] * len(paths)
        for path, value in members.items():
            position = positions.get(path)
            if position is None:
                return None
            row[position] = _to_cell_text(value)
        cells += row
    offsets = pa.array(range(0, len(cells) + 1, len(paths)) if paths else [0] * (len(payloads) + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(cells, pa.string()))


def _iterate_leaf_values_by_path(payloads: pa.Array) -> Iterator[Mapping[KeyPath, Any]]:
    for payload in payloads:
        members: dict[KeyPath, Any] = {}
        _collect_leaf_values(parse_lossless_json(payload.as_buffer().to_pybytes()), (), members)
        yield members


def _collect_leaf_values(value: Mapping[str, Any], key_path: KeyPath, leaf_values: dict[KeyPath, Any]) -> None:
    for key, member in value.items():
        path = (*key_path, key)
        if member and isinstance(member, dict) and len(path) < MAX_DEPTH:
            _collect_leaf_values(member, path, leaf_values)
        else:
            leaf_values[path] = member


def _to_cell_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if type(value) is int else serialise_lossless_json(value).decode()
