"""KQL aggregates and functions over intermediate results: ``tdigest``, ``hll`` and ``buildschema``.

A t-digest has Data Explorer's form ``[[7], [values], [weights]]``. It is exact for up to 1,000 different values; if
there are more, neighbouring values are merged. The result of ``hll``, a set of hashes, has the form ``[[1024, 14],
[hashes], []]``. It is exact for up to 1,024 different values; if there are more, it contains the 16,384 registers of a
HyperLogLog sketch instead of the hashes.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from duckdb_kql import ir
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, AggregateSpec

from emulators.kusto.extensions.conversions import render_type_conversion
from emulators.kusto.extensions.language import read_kql_function_descriptions
from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.registry import ANY_NUMBER, add_custom_function
from emulators.kusto.extensions.scalar_calls import (
    INTEGERS_OF_64_BITS,
    JsonValue,
    ScalarCall,
    build_python_functions,
    install_scalar_calls,
    parse_dynamic,
)
from emulators.kusto.extensions.sql import KustoType, Sql, render_expression
from emulators.kusto.python_functions import PythonFunction
from emulators.kusto.series_functions import SeriesFunction
from emulators.kusto.stop_events import EXECUTION, raise_if_stopped

REGISTER_BITS = 14
REGISTERS = 1 << REGISTER_BITS
_SKETCHES = "emulators.kusto.series.sketches"
_STEPS = 4096
"""Number of values between two checks for cancellation."""

type TDigest = JsonValue
"""Result of ``tdigest``."""
type HashSet = JsonValue
"""Result of ``hll``."""
type ValueSchema = Any
"""Schema of dynamic values as JSON: a type name, a list of alternatives, or an object with the schema of each key."""
type ValuesAndWeights = list[tuple[float, float]]
"""Values and weights in ascending order of the values."""


def extract_values_and_weights(digest: TDigest) -> ValuesAndWeights:
    """Return the values and weights of a t-digest.

    Raises:
        ValueError, TypeError: the t-digest is malformed, or a number is NaN or infinite.
        OverflowError: a number is an integer beyond the range of a double.
    """
    _, values, weights = digest
    pairs = sorted(zip(map(float, values), map(float, weights), strict=True))
    # An integer with more digits than Python converts is infinite.
    if not all(map(math.isfinite, itertools.chain.from_iterable(pairs))):
        raise ValueError("a t-digest has only finite numbers")
    return pairs


def _compute_percentile(digest: TDigest, percentile: float) -> float | None:
    pairs = extract_values_and_weights(digest)
    if not pairs or not 0 <= percentile <= 100:  # noqa: PLR2004
        return None
    wanted = sum(weight for _, weight in pairs) * percentile / 100
    for (value, _), reached in zip(pairs, itertools.accumulate(weight for _, weight in pairs), strict=True):
        if reached >= wanted:
            return value
    return pairs[-1][0]


def _compute_percentiles(digest: TDigest, percentile_texts: Sequence[str]) -> list[float | None]:
    return [_compute_percentile(digest, float(each)) for each in percentile_texts]


def _sum_weights_of_smaller_values(digest: TDigest, value: float) -> float:
    return sum(weight for each, weight in extract_values_and_weights(digest) if each < value)


def _compute_percentage_of_weight_up_to_value(digest: TDigest, value: float) -> float | None:
    pairs = extract_values_and_weights(digest)
    total = sum(weight for _, weight in pairs)
    return sum(weight for each, weight in pairs if each <= value) / total * 100 if total else None


def estimate_distinct_count(hash_set: HashSet) -> int:
    """Estimate the number of different values from a result of ``hll``."""
    _, hashes, registers = hash_set
    if not registers:
        return len(hashes)
    estimate = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / sum(2.0**-each for each in registers)
    empty = registers.count(0)
    if estimate <= 2.5 * REGISTERS and empty:
        estimate = REGISTERS * math.log(REGISTERS / empty)
    count: int = round(estimate)
    return count


def infer_common_schema_output(json_texts: Sequence[str | None] | None) -> dict[str, str]:
    """Infer one common schema of several JSON texts; return ``{"schema": text}`` with the schema as JSON text."""
    schema: ValueSchema = None
    for number, each in enumerate(json_texts or ()):
        if number % _STEPS == 0:
            raise_if_stopped()
        if each is not None:
            schema = _merge_schemas(schema, _infer_value_schema(parse_dynamic(each)))
    return {"schema": orjson.dumps(schema).decode()}


def _infer_value_schema(json_value: JsonValue) -> ValueSchema:
    if isinstance(json_value, dict):
        return {key: _infer_value_schema(each) for key, each in json_value.items()}
    if isinstance(json_value, list):
        inner: ValueSchema = None
        for each in json_value:
            inner = _merge_schemas(inner, _infer_value_schema(each))
        return {"`indexer`": inner if inner is not None else {}}
    return _find_kusto_type_of_json_value(json_value)


def _find_kusto_type_of_json_value(json_value: JsonValue) -> KustoType | None:
    if json_value is None:
        return None
    if isinstance(json_value, bool):
        return "bool"
    if isinstance(json_value, int):
        return "long" if json_value in INTEGERS_OF_64_BITS else "double"
    return "double" if isinstance(json_value, float) else "string"


def _merge_schemas(left: ValueSchema, right: ValueSchema) -> ValueSchema:
    if left is None or left == right:
        return right
    if right is None:
        return left
    if isinstance(left, dict) and isinstance(right, dict):
        return {key: _merge_schemas(left.get(key), right.get(key)) for key in left | right}
    lefts = left if isinstance(left, list) else [left]
    return lefts if right in lefts else [*lefts, right]


CALLS = (
    ScalarCall("percentile_tdigest", _compute_percentile, "dynamic real", "dynamic"),
    ScalarCall("percentiles_array_tdigest", _compute_percentiles, "dynamic *", "dynamic"),
    ScalarCall("percentrank_tdigest", _compute_percentage_of_weight_up_to_value, "dynamic digested", "real"),
    ScalarCall("rank_tdigest", _sum_weights_of_smaller_values, "dynamic digested", "real"),
    ScalarCall("dcount_hll", estimate_distinct_count, "dynamic", "long"),
)
functions: tuple[PythonFunction, ...] = build_python_functions(CALLS)
_DIGEST = SeriesFunction(
    "digest", ("DOUBLE[]", "DOUBLE[]"), {"digest": "text"}, f"{_SKETCHES}:summarize_values_as_digest"
)
_HASH_SET = SeriesFunction("hash_set", ("BIGINT[]",), {"hashes": "text"}, f"{_SKETCHES}:summarize_hashes_as_set")
_MERGED_DIGEST = SeriesFunction("merged_digest", ("VARCHAR[]",), {"merged": "text"}, f"{_SKETCHES}:merge_digests")
_MERGED_SET = SeriesFunction(
    "merged_hash_set", ("VARCHAR[]",), {"merged": "text"}, f"{_SKETCHES}:build_merged_set_output"
)
_SCHEMA = SeriesFunction("schema", ("VARCHAR[]",), {"schema": "text"}, f"{__name__}:infer_common_schema_output")
series_functions: tuple[SeriesFunction, ...] = (_DIGEST, _HASH_SET, _MERGED_DIGEST, _MERGED_SET, _SCHEMA)
"""Functions in Python over the values of a group, which can be millions."""
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
_MERGES = {"tdigest_merge": _MERGED_DIGEST, "merge_tdigest": _MERGED_DIGEST, "hll_merge": _MERGED_SET}
"""Function in Python for each aggregate that is also a scalar function of several arguments."""


def _render_call_with_json_result(function: SeriesFunction, *arguments: Sql) -> Sql:
    """Render SQL that calls a Python function with one output, and returns this output as JSON."""
    (output,) = function.outputs
    return f"CAST(struct_extract({function.render_call_sql(*arguments)}, '{output}') AS JSON)"


def _render_converted_percentile(
    render_percentile_call: Callable[[ir.FunctionCall], Sql], call: ir.FunctionCall
) -> Sql:
    """Render a percentile of a t-digest, converted to the type that an optional third argument ``typeof()`` names."""
    sql = render_percentile_call(dataclasses.replace(call, args=call.args[:2]))
    return sql if len(call.args) == 2 else render_type_conversion(sql, call.args[2], call.name)  # noqa: PLR2004


def _render_call_with_argument_list(function: SeriesFunction, call: ir.FunctionCall) -> Sql:
    """Render SQL that calls a Python function with all arguments of a KQL call as one list of texts."""
    listed = ", ".join(f"CAST({render_expression(arg)} AS VARCHAR)" for arg in call.args)
    return _render_call_with_json_result(function, f"[{listed}]")


class DigestAggregate(AggregateSpec):
    """Aggregate ``tdigest``, which has an optional second argument with the weights."""

    def render(self, args: list[Sql]) -> Sql:
        """Return the SQL of the aggregate; the arguments are SQL texts."""
        weights = f"list(CAST({args[1]} AS DOUBLE))" if len(args) > 1 else "NULL"
        call = _DIGEST.render_call_sql(f"list(kql_summable({args[0]}))", weights)
        return f"CAST(struct_extract({call}, 'digest') AS JSON)"


class HashSetAggregate(AggregateSpec):
    """Aggregate ``hll`` or ``hll_if``; its argument for the accuracy is ignored."""

    def render(self, args: list[Sql]) -> Sql:
        """Return the SQL of the aggregate; the arguments are SQL texts."""
        where = f" AND {args[1]}" if self.name == "hll_if" else ""
        hashes = f"list(DISTINCT kql_hash({EXECUTION}, {args[0]})) FILTER (WHERE {args[0]} IS NOT NULL{where})"
        return _render_call_with_json_result(_HASH_SET, hashes)


def install_into_translator() -> None:
    """Add ``tdigest``, ``hll``, ``buildschema`` and the functions over their results to the KQL translator library."""
    install_scalar_calls(CALLS)
    percentile = writer.SPECIAL_FORMS["percentile_tdigest"]
    add_custom_function("percentile_tdigest", (2, 3), functools.partial(_render_converted_percentile, percentile))
    for name, function in _MERGES.items():
        prefix = read_kql_function_descriptions("aggregates")[name]["naming"]["prefix"]
        AGGREGATE_FUNCTIONS[name] = AggregateSpec(
            name, _render_call_with_json_result(function, _TEXTS), (1,), name_prefix=prefix
        )
        add_custom_function(name, ANY_NUMBER, functools.partial(_render_call_with_argument_list, function))
    AGGREGATE_FUNCTIONS["buildschema"] = AggregateSpec(
        "buildschema", _render_call_with_json_result(_SCHEMA, _TEXTS), (1,), name_prefix="schema"
    )
    AGGREGATE_FUNCTIONS["tdigest"] = DigestAggregate("tdigest", "", (1, 2))
    AGGREGATE_FUNCTIONS["hll"] = HashSetAggregate("hll", "", (1, 2))
    AGGREGATE_FUNCTIONS["hll_if"] = HashSetAggregate("hll_if", "", (2, 3))
