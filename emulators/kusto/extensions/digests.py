"""KQL aggregates and functions over intermediate results: ``tdigest``, ``hll`` and ``buildschema``.

A digest has Data Explorer's form: ``[[7], [values], [weights]]``. It is exact for up to 1,000 different values; more
values are merged with their neighbours. A set of hashes has the form ``[[1024, 14], [hashes], []]`` and is exact for up
to 1,024 different values; for more, it has the 16,384 registers of a HyperLogLog instead of the hashes.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
from duckdb_kql import ir
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, AggregateSpec

from emulators.kusto.extensions.conversions import convert_to_type
from emulators.kusto.extensions.language import read_symbols
from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.registry import ANY_NUMBER, add_custom_function
from emulators.kusto.extensions.scalar_calls import ScalarCall, build_functions, install_calls
from emulators.kusto.extensions.sql import render_expression
from emulators.kusto.python_functions import PythonFunction

MAX_CENTROIDS = 1000
MAX_HASHES = 1024
_DIGEST_VERSION = [7]
_SET_VERSION = [1024, 14]
_BITS = 14
_REGISTERS = 1 << _BITS
_MASK = (1 << 64) - 1

type Pairs = list[tuple[float, float]]
"""Values and weights in ascending order of the values."""


def _build_digest(pairs: Iterable[tuple[float, float]]) -> str:
    weights: dict[float, float] = {}
    for value, weight in pairs:
        weights[value] = weights.get(value, 0) + weight
    merged = sorted(weights.items())
    while len(merged) > MAX_CENTROIDS:
        merged = [_merge_centroids(group) for group in itertools.batched(merged, 2, strict=False)]
    values, counts = [value for value, _ in merged], [weight for _, weight in merged]
    return orjson.dumps([_DIGEST_VERSION, values, counts]).decode()


def _merge_centroids(group: Sequence[tuple[float, float]]) -> tuple[float, float]:
    total = sum(weight for _, weight in group)
    return sum(value * weight for value, weight in group) / total, total


def _read_digest(digest: Any) -> Pairs:
    """Return the values and weights of a digest; raise ValueError if it is not valid."""
    _, values, weights = digest
    return sorted(zip(map(float, values), map(float, weights), strict=True))


def _summarize_values(values: list[float | None] | None, weights: list[float | None] | None) -> str | None:
    counts = weights or [1] * len(values or ())
    pairs = zip(values or (), counts, strict=True)
    return _build_digest((v, _shorten(w)) for v, w in pairs if v is not None and w is not None and w > 0)


def _shorten(weight: float) -> float:
    return int(weight) if float(weight).is_integer() else weight


def _merge_digests(digests: list[str | None] | None) -> str | None:
    found = [orjson.loads(each) for each in digests or () if each is not None]
    valid = [each for each in map(_try_digest, found) if each is not None]
    if found and not valid:
        return None
    return _build_digest((value, _shorten(weight)) for each in valid for value, weight in each)


def _try_digest(digest: Any) -> Pairs | None:
    """Return the values and weights of a digest; None if it is not valid."""
    try:
        return _read_digest(digest)
    except (ValueError, TypeError):
        return None


def _find_percentile(digest: Any, percentile: float) -> float | None:
    pairs = _read_digest(digest)
    if not pairs or not 0 <= percentile <= 100:  # noqa: PLR2004
        return None
    wanted = sum(weight for _, weight in pairs) * percentile / 100
    for (value, _), reached in zip(pairs, itertools.accumulate(weight for _, weight in pairs), strict=True):
        if reached >= wanted:
            return value
    return pairs[-1][0]


def _find_percentiles(digest: Any, percentiles: Sequence[str]) -> list[float | None]:
    return [_find_percentile(digest, float(each)) for each in percentiles]


def _find_rank(digest: Any, value: float) -> float:
    return sum(weight for each, weight in _read_digest(digest) if each < value)


def _find_percent_rank(digest: Any, value: float) -> float | None:
    pairs = _read_digest(digest)
    total = sum(weight for _, weight in pairs)
    return sum(weight for each, weight in pairs if each <= value) / total * 100 if total else None


def _build_hash_set(hashes: list[int | None] | None) -> str:
    different = {each for each in hashes or () if each is not None}
    if len(different) <= MAX_HASHES:
        return orjson.dumps([_SET_VERSION, [str(each) for each in sorted(different)], []]).decode()
    return orjson.dumps([_SET_VERSION, [], _fill_registers(different, [0] * _REGISTERS)]).decode()


def _fill_registers(hashes: Iterable[int], registers: list[int]) -> list[int]:
    for each in hashes:
        value = each & _MASK
        index, rest = value >> (64 - _BITS), value & ((1 << (64 - _BITS)) - 1)
        registers[index] = max(registers[index], 64 - _BITS - rest.bit_length() + 1)
    return registers


def _read_hash_set(text: str) -> tuple[list[int], list[int]] | None:
    """Return the hashes and the registers of a set; None if the text is not that of a set."""
    try:
        _, hashes, registers = orjson.loads(text)
        read = [int(each) for each in hashes], [int(each) for each in registers]
    except (ValueError, TypeError):
        return None
    return read if len(read[1]) in (0, _REGISTERS) else None


def merge_hash_sets(sets: Sequence[str | None] | None) -> str | None:
    """Return the union of sets of hashes, which are JSON texts; None if no text is that of a set."""
    found = [_read_hash_set(each) for each in sets or () if each is not None]
    valid = [each for each in found if each is not None]
    if found and not valid:
        return None
    hashes = {each for one, _ in valid for each in one}
    dense = [registers for _, registers in valid if registers]
    if not dense:
        return _build_hash_set(list(hashes))
    merged = [max(values) for values in zip(*dense, strict=True)]
    return orjson.dumps([_SET_VERSION, [], _fill_registers(hashes, merged)]).decode()


def count_distinct(one: Any) -> int:
    """Return the number of different values in a set of hashes."""
    _, hashes, registers = one
    if not registers:
        return len(hashes)
    estimate = 0.7213 / (1 + 1.079 / _REGISTERS) * _REGISTERS**2 / sum(2.0**-each for each in registers)
    empty = registers.count(0)
    if estimate <= 2.5 * _REGISTERS and empty:
        estimate = _REGISTERS * math.log(_REGISTERS / empty)
    count: int = round(estimate)
    return count


def _build_schema(values: list[str | None] | None) -> str | None:
    schema: Any = None
    for each in values or ():
        if each is not None:
            schema = _merge_schemas(schema, _describe(orjson.loads(each)))
    return orjson.dumps(schema).decode()


def _describe(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _describe(each) for key, each in value.items()}
    if isinstance(value, list):
        inner: Any = None
        for each in value:
            inner = _merge_schemas(inner, _describe(each))
        return {"`indexer`": inner if inner is not None else {}}
    return _name_type(value)


def _name_type(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "long"
    return "double" if isinstance(value, float) else "string"


def _merge_schemas(left: Any, right: Any) -> Any:
    if left is None or left == right:
        return right
    if right is None:
        return left
    if isinstance(left, dict) and isinstance(right, dict):
        return {key: _merge_schemas(left.get(key), right.get(key)) for key in left | right}
    lefts = left if isinstance(left, list) else [left]
    return lefts if right in lefts else [*lefts, right]


CALLS = (
    ScalarCall("percentile_tdigest", _find_percentile, "dynamic real", "dynamic"),
    ScalarCall("percentiles_array_tdigest", _find_percentiles, "dynamic *", "dynamic"),
    ScalarCall("percentrank_tdigest", _find_percent_rank, "dynamic digested", "real"),
    ScalarCall("rank_tdigest", _find_rank, "dynamic digested", "real"),
    ScalarCall("dcount_hll", count_distinct, "dynamic", "long"),
)
functions: tuple[PythonFunction, ...] = (
    *build_functions(CALLS),
    PythonFunction("kql_digest", _summarize_values, ("DOUBLE[]", "DOUBLE[]"), "VARCHAR"),
    PythonFunction("kql_merged_digest", _merge_digests, ("VARCHAR[]",), "VARCHAR"),
    PythonFunction("kql_hash_set", _build_hash_set, ("BIGINT[]",), "VARCHAR"),
    PythonFunction("kql_merged_hash_set", merge_hash_sets, ("VARCHAR[]",), "VARCHAR"),
    PythonFunction("kql_schema", _build_schema, ("VARCHAR[]",), "VARCHAR"),
)
SUPPORTED: tuple[str, ...] = (
    *(call.name for call in CALLS),
    "buildschema",
    "hll",
    "hll_if",
    "hll_merge",
    "tdigest",
    "tdigest_merge",
    "merge_tdigest",
)
macros: tuple[str, ...] = (
    # A value as in a digest; null for a value that no digest contains.
    (
        "CREATE OR REPLACE MACRO kql_digest_value(a DOUBLE) AS a, (a BIGINT) AS CAST(a AS DOUBLE), "
        "(a INTEGER) AS CAST(a AS DOUBLE), (a HUGEINT) AS CAST(a AS DOUBLE), (a DECIMAL(38, 9)) AS CAST(a AS DOUBLE), "
        "(a INTERVAL) AS kql_summable(a), (a TIMESTAMP) AS kql_summable(a), (a VARCHAR) AS TRY_CAST(a AS DOUBLE), "
        "(a BOOLEAN) AS CAST(NULL AS DOUBLE), (a UUID) AS CAST(NULL AS DOUBLE)"
    ),
)
_TEXTS = "list(CAST({0} AS VARCHAR))"
_MERGES = {
    "tdigest_merge": "kql_merged_digest",
    "merge_tdigest": "kql_merged_digest",
    "hll_merge": "kql_merged_hash_set",
}
"""Function in SQL for each aggregate that is also a scalar function of several arguments."""


def _render_percentile(render: Callable[[ir.FunctionCall], str], call: ir.FunctionCall) -> str:
    sql = render(dataclasses.replace(call, args=call.args[:2]))
    return sql if len(call.args) == 2 else convert_to_type(sql, call.args[2], call.name)  # noqa: PLR2004


def _render_merge(function: str, call: ir.FunctionCall) -> str:
    listed = ", ".join(f"CAST({render_expression(arg)} AS VARCHAR)" for arg in call.args)
    return f"CAST({function}([{listed}]) AS JSON)"


class DigestAggregate(AggregateSpec):
    """Aggregate ``tdigest``, whose second argument, the weight, is optional."""

    def render(self, args: list[str]) -> str:
        """Return the SQL of the aggregate; the arguments are SQL texts."""
        weights = f"list(CAST({args[1]} AS DOUBLE))" if len(args) > 1 else "NULL"
        return f"CAST(kql_digest(list(kql_summable({args[0]})), {weights}) AS JSON)"


class HashSetAggregate(AggregateSpec):
    """Aggregate ``hll`` or ``hll_if``; the accuracy is ignored."""

    def render(self, args: list[str]) -> str:
        """Return the SQL of the aggregate; the arguments are SQL texts."""
        where = f" AND {args[1]}" if self.name == "hll_if" else ""
        hashes = f"list(DISTINCT kql_hash({args[0]})) FILTER (WHERE {args[0]} IS NOT NULL{where})"
        return f"CAST(kql_hash_set({hashes}) AS JSON)"


def install() -> None:
    """Add the aggregates and functions to the KQL translator library."""
    install_calls(CALLS)
    percentile = writer.SPECIAL_FORMS["percentile_tdigest"]
    add_custom_function("percentile_tdigest", (2, 3), functools.partial(_render_percentile, percentile))
    for name, function in _MERGES.items():
        prefix = read_symbols("aggregates")[name]["naming"]["prefix"]
        AGGREGATE_FUNCTIONS[name] = AggregateSpec(name, f"CAST({function}({_TEXTS}) AS JSON)", (1,), name_prefix=prefix)
        add_custom_function(name, ANY_NUMBER, functools.partial(_render_merge, function))
    schema = f"CAST(kql_schema({_TEXTS}) AS JSON)"
    AGGREGATE_FUNCTIONS["buildschema"] = AggregateSpec("buildschema", schema, (1,), name_prefix="schema")
    AGGREGATE_FUNCTIONS["tdigest"] = DigestAggregate("tdigest", "", (1, 2))
    AGGREGATE_FUNCTIONS["hll"] = HashSetAggregate("hll", "", (1, 2))
    AGGREGATE_FUNCTIONS["hll_if"] = HashSetAggregate("hll_if", "", (2, 3))
