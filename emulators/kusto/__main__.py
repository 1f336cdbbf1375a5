"""Run the embedded Kusto endpoint: ``python -m emulators.kusto --data DIR``."""

import os

_ALLOCATOR = "DUCKDB_JE_MALLOC_CONF"
_GIVING_BACK = "retain:false,dirty_decay_ms:2000,muzzy_decay_ms:0"
"""DuckDB's allocator keeps by default every address that it ever had. This process's addresses are bounded: after a few
queries of gigabytes nothing would be left for honest ones (jemalloc's documentation, ``opt.retain``)."""


def main() -> None:
    """Configure the allocator, which reads its settings when DuckDB is loaded, and serve."""
    os.environ.setdefault(_ALLOCATOR, _GIVING_BACK)
    from emulators.kusto.command import main as serve  # noqa: PLC0415  it loads DuckDB

    serve()


if __name__ == "__main__":
    main()
