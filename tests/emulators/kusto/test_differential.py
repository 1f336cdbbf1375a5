"""Tests that random queries have the same outcome in the engine and in the KQL language service."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from scripts.kql_known_differences import is_column_difference_known, is_rejection_known
from scripts.kql_language import ROOT, read_kql_names_by_kind
from tests.emulators.kusto.kql_generator import TABLE, QueryGenerator
from tests.node_suites import running

_SHORT, _LONG = 400, 20_000
_LEAST_OCCURRENCES = 20
_MOST_FAILURES = 0.001
_PART = 2000
_LEAST_AGREEMENT, _LEAST_COLUMNS = 0.97, 0.98
_MISSING = running.find_missing_requirement("@kusto/language-service-next")
_CALL = re.compile(r"\b([a-z]\w*)\(")
_RANDOM = frozenset({"rand", "new_guid", "now"})
_UNSUPPORTED = ("EMB0001", "EMB0003")


@dataclass(slots=True)
class Comparison:
    """Counts and differences of a run of random queries."""

    compared: int = 0
    agreed: int = 0
    failed: int = 0
    columns: int = 0
    invalid: int = 0
    equal_columns: int = 0
    accepted_locally: list[str] = field(default_factory=list)
    rejected_locally: list[str] = field(default_factory=list)
    other_columns: list[str] = field(default_factory=list)

    def compare_outcomes(self, query: str, service: dict[str, Any], code: str, columns: list[list[str]]) -> None:
        """Compare the outcome of a query in the language service with its outcome in the engine."""
        if service["errors"] is None:
            self.failed += 1
            return
        self.invalid += bool(service["errors"])
        message = code or " ".join(str(error) for error in service["errors"])
        if code.startswith(_UNSUPPORTED) or (code and not service["errors"] and is_rejection_known(query, code)):
            return
        self.compared += 1
        if bool(service["errors"]) != bool(code):
            (self.rejected_locally if code else self.accepted_locally).append(f"{query}  # {message[:200]}")
            return
        self.agreed += 1
        if code or service["columns"] is None or any(kind == "unknown" for _, kind in service["columns"]):
            return
        if service["columns"] != columns and is_column_difference_known(query, service["columns"], columns):
            return
        self.columns += 1
        if service["columns"] == columns:
            self.equal_columns += 1
        else:
            self.other_columns.append(f"{query}  # {service['columns']} {columns}")


def compare_queries(queries: list[str]) -> Comparison:
    """Run queries in the language service and in the engine, and compare the results."""
    tables = {"T": list(TABLE.items())}
    comparison = Comparison()
    for start in range(0, len(queries), _PART):
        part = queries[start : start + _PART]
        replies = running.run_script("kusto_language.mjs", text=json.dumps({"tables": tables, "queries": part}))
        assert replies.returncode == 0, replies.stderr
        results = run_in_process(["-m", "tests.emulators.kusto.query_runner"], json.dumps(part))
        for query, service, (code, columns) in zip(part, json.loads(replies.stdout), json.loads(results), strict=True):
            comparison.compare_outcomes(query, service, code, columns)
    return comparison


def run_in_process(arguments: list[str], text: str = "") -> str:
    """Run Python code in a separate process, because the engine changes the translator library."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def list_shared_symbols() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the functions and aggregates that both the engine and the language service support."""
    code = (
        "import json; from scripts.kql_language import *; patch_translator_and_install_extensions(); "
        "supported = find_supported_names(read_kql_names_by_kind()); "
        "print(json.dumps({kind: sorted(names) for kind, names in supported.items()}))"
    )
    supported, language = json.loads(run_in_process(["-c", code])), read_kql_names_by_kind()
    functions, aggregates = (
        [each for each in language[kind] if each["name"] in set(supported[kind]) - _RANDOM]
        for kind in ("functions", "aggregates")
    )
    return functions, aggregates


def generate_queries(count: int, seed: int) -> list[str]:
    """Return queries over the functions and aggregates that the engine supports."""
    return list(QueryGenerator(seed, *list_shared_symbols()).generate(count))


def count_queries(names: Iterable[str], queries: Iterable[str]) -> dict[str, int]:
    """Return for each name the number of queries that call it."""
    found = Counter(name for query in queries for name in set(_CALL.findall(query)))
    return {name: found[name] for name in names}


def check_comparison(comparison: Comparison) -> None:
    """Check that the engine accepts no query that the language service rejects, and that both agree often enough."""
    assert comparison.failed <= comparison.compared * _MOST_FAILURES
    assert comparison.accepted_locally == []
    assert comparison.agreed / comparison.compared >= _LEAST_AGREEMENT, comparison.rejected_locally
    assert comparison.equal_columns / comparison.columns >= _LEAST_COLUMNS, comparison.other_columns


@pytest.mark.skipif(bool(_MISSING), reason=_MISSING)
def test_engine_and_language_service_agree_on_random_queries() -> None:
    """Engine and language service accept a query with the same columns, or both reject it."""
    check_comparison(compare_queries(generate_queries(_SHORT, seed=1)))


@pytest.mark.soak
@pytest.mark.skipif(bool(_MISSING), reason=_MISSING)
def test_engine_and_language_service_agree_on_20000_random_queries() -> None:
    """Engine and language service agree on 20,000 queries, half of them invalid, with every function."""
    functions, aggregates = list_shared_symbols()
    queries = list(QueryGenerator(2, functions, aggregates).generate(_LONG))
    counts = count_queries([each["name"] for each in (*functions, *aggregates)], queries)
    assert {name: count for name, count in counts.items() if count < _LEAST_OCCURRENCES} == {}
    comparison = compare_queries(queries)
    assert comparison.invalid >= len(queries) / 2
    check_comparison(comparison)
