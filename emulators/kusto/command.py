"""The command line of the embedded Kusto endpoint."""

import argparse
import logging
import os
import re
from pathlib import Path

import duckdb

from emulators.kusto.process import Arguments, serve
from emulators.kusto.tables import UnusableFolderError
from shared.observability.logs import configure

_LOGGER = logging.getLogger("emulators.kusto")
"""The parent of this package's loggers."""


def main() -> None:
    """Parse the command line and serve."""
    arguments = _arguments()
    level = os.environ.get("LOG_LEVEL") or "INFO"
    configure(level)
    _LOGGER.setLevel(level)
    code = 0
    try:
        serve(arguments)
    except (duckdb.Error, UnusableFolderError, OSError) as error:
        _LOGGER.error("cannot serve: %s", error)  # noqa: TRY400  the text says it all
        code = 1
    except Exception:
        _LOGGER.exception("the endpoint broke")
        code = 1
    logging.shutdown()
    # A query that does not end must not keep the process, whose threads Python would wait for.
    os._exit(code)


def _arguments() -> Arguments:
    parser = argparse.ArgumentParser(prog="python -m emulators.kusto", description="Run the embedded Kusto endpoint.")
    parser.add_argument("--data", type=Path, required=True, help="folder of *.parquet tables, or of the database file")
    parser.add_argument("--port", type=int, default=8088, help="on 127.0.0.1; 0 picks a free one")
    parser.add_argument("--database", default="Telemetry", help="name of the database that clients ask for")
    parser.add_argument("--hub", type=Path, help="event hub file that feeds the table Telemetry")
    parser.add_argument("--exit-with-parent", action="store_true", help="end when standard input ends")
    parser.add_argument("--memory-limit", type=_bytes, default="1GB", dest="memory_bytes", help="of the query engine")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of the query engine")
    return Arguments(**vars(parser.parse_args()))


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)(KB|MB|GB)", text)
    if match is None:
        raise argparse.ArgumentTypeError("a size such as 1GB or 512MB is expected")
    return int(match[1]) * {"KB": 1000, "MB": 1000**2, "GB": 1000**3}[match[2]]
