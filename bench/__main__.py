"""Command that runs all benchmarks, or the benchmarks with the given names: ``python -m bench [--runs N] [NAME]``.

Each benchmark runs three times unless ``--runs`` says otherwise. Each line of output has the minimum, the median and
the maximum of a figure. The median must be within the figure's bounds. If the figure counts defects, the value of every
run must be within them.

If a tool that a benchmark requires is not installed, the tool is reported on standard error, and all other benchmarks
run. Exit codes: 0 if every benchmark ran and every measured figure is within its bounds, 1 if a figure is outside its
bounds, 2 for an unknown name, 3 if all measured figures are within their bounds but a tool is missing.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence

from bench.alerts import measure_alerts
from bench.archive import measure_ingest_with_archive
from bench.audit_overview import measure_audit_overview
from bench.catalog_lists import measure_catalog_lists
from bench.chain import measure_chain
from bench.cold_start import measure_cold_start
from bench.connection_list import measure_connection_list
from bench.console import measure_console
from bench.console_live import measure_console_live
from bench.cosmos import measure_cosmos
from bench.documents import measure_documents
from bench.downloads import measure_downloads
from bench.duplicates import measure_deduplication
from bench.event_loop import measure_event_loop
from bench.expression_times import measure_expression_times
from bench.figures import Benchmark, Figure, ToolMissingError, summarise_runs_as_json
from bench.gateway import measure_gateway
from bench.graphql_list import measure_graphql_list
from bench.import_time import measure_import_time
from bench.imports import measure_imports
from bench.ingest import measure_ingest
from bench.kql import measure_kql
from bench.kql_series import measure_kql_series
from bench.live import measure_live_fan_out
from bench.live_stream import measure_ingest_with_live, measure_live_stream
from bench.message_cost import measure_message_cost
from bench.overload import measure_overload
from bench.peers import measure_peers
from bench.receipts import measure_receipts
from bench.request_rate import measure_request_rate
from bench.warm_query import measure_warm_query
from bench.webhooks import measure_webhooks
from bench.workspace_document import measure_workspace_document

BOUND_BROKEN, UNKNOWN_NAME, TOOL_MISSING = 1, 2, 3
BENCHMARKS: Mapping[str, Benchmark] = {
    "import_time": measure_import_time,
    "expression_times": measure_expression_times,
    "event_loop": measure_event_loop,
    "cold_start": measure_cold_start,
    "request_rate": measure_request_rate,
    "overload": measure_overload,
    "warm_query": measure_warm_query,
    "message_cost": measure_message_cost,
    "duplicates": measure_deduplication,
    "ingest": measure_ingest,
    "ingest_with_archive": measure_ingest_with_archive,
    "gateway": measure_gateway,
    "peers": measure_peers,
    "chain": measure_chain,
    "audit_overview": measure_audit_overview,
    "receipts": measure_receipts,
    "cosmos": measure_cosmos,
    "kql": measure_kql,
    "kql_series": measure_kql_series,
    "live_fan_out": measure_live_fan_out,
    "graphql_list": measure_graphql_list,
    "downloads": measure_downloads,
    "imports": measure_imports,
    "documents": measure_documents,
    "catalog_lists": measure_catalog_lists,
    "connections": measure_connection_list,
    "workspace_document": measure_workspace_document,
    "alerts": measure_alerts,
    "webhooks": measure_webhooks,
    "ingest_with_live": measure_ingest_with_live,
    "live_stream": measure_live_stream,
    "console": measure_console,
    "console_live": measure_console_live,
}
"""Benchmarks by name, in the order in which they run."""


def main(arguments: Sequence[str]) -> int:
    """Run the named benchmarks, or all benchmarks, and return the exit code."""
    names, runs = _parse_benchmark_names_and_runs(arguments)
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        print(f"unknown benchmark {', '.join(unknown)}; choose from {', '.join(BENCHMARKS)}", file=sys.stderr)
        return UNKNOWN_NAME
    held = complete = True
    for name in names or BENCHMARKS:
        figures: dict[str, list[Figure]] = {}
        try:
            for _ in range(runs):
                for figure in BENCHMARKS[name]():
                    figures.setdefault(figure.name, []).append(figure)
        except ToolMissingError as error:
            print(f"{name}: {error}", file=sys.stderr)
            complete = False
        for line in map(summarise_runs_as_json, figures.values()):
            print(json.dumps(line), flush=True)
            held = held and line["holds"]
    if not held:
        return BOUND_BROKEN
    return 0 if complete else TOOL_MISSING


def _parse_benchmark_names_and_runs(arguments: Sequence[str]) -> tuple[Sequence[str], int]:
    """Parse the command line; return the names of the benchmarks to run, and the number of runs of each benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run the benchmarks, one JSON object a line.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmark to run; default: all")
    parser.add_argument(
        "--runs", type=int, choices=range(1, 100), default=3, metavar="N", help="runs of each benchmark"
    )
    parsed = parser.parse_args(arguments)
    return parsed.names, parsed.runs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
