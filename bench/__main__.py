"""``python -m bench [NAME]``: run every benchmark, or the one of that name.

A benchmark whose tools are missing is reported on standard error, and the others run. Exit codes: 0 if every benchmark
ran and every bound holds, 1 if a bound does not hold, 2 for an unknown name, 3 if every bound holds but a tool is
missing.
"""

import json
import sys

from bench.archive import ingest_with_archive
from bench.chain import chain
from bench.cold_start import cold_start
from bench.console import console
from bench.console_live import console_live
from bench.cosmos import cosmos
from bench.documents import documents
from bench.downloads import downloads
from bench.event_loop import event_loop
from bench.expression_times import expression_times
from bench.figures import Benchmark, ToolMissingError
from bench.graphql_list import graphql_list
from bench.import_time import import_time
from bench.ingest import ingest
from bench.kql import kql
from bench.live import live_fan_out
from bench.live_stream import ingest_with_live, live_stream
from bench.overload import overload
from bench.peers import peers
from bench.request_rate import request_rate
from bench.warm_query import warm_query

BOUND_BROKEN, UNKNOWN_NAME, TOOL_MISSING = 1, 2, 3
BENCHMARKS: tuple[Benchmark, ...] = (
    import_time,
    expression_times,
    event_loop,
    cold_start,
    request_rate,
    overload,
    warm_query,
    ingest,
    ingest_with_archive,
    peers,
    chain,
    cosmos,
    kql,
    live_fan_out,
    graphql_list,
    downloads,
    documents,
    ingest_with_live,
    live_stream,
    console,
    console_live,
)


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them, and return the exit code."""
    known = {benchmark.__name__: benchmark for benchmark in BENCHMARKS}
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"unknown benchmark {', '.join(unknown)}; choose from {', '.join(known)}", file=sys.stderr)
        return UNKNOWN_NAME
    held = complete = True
    for name in names or known:
        try:
            for figure in known[name]():
                line = figure.to_json()
                print(json.dumps(line), flush=True)
                held = held and line["holds"]
        except ToolMissingError as error:
            print(f"{name}: {error}", file=sys.stderr)
            complete = False
    if not held:
        return BOUND_BROKEN
    return 0 if complete else TOOL_MISSING


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
