"""Command that runs the Data Explorer emulator: ``python -m emulators.kusto --data DIR``.

``local.kusto`` is an alias in a separate module, for users who know only the package ``local``.
"""

import gc
import os

# Imports create objects that exist until the process ends; a garbage collection in between finds nothing to delete.
gc.disable()

from emulators.kusto.translator_process import fork_translator  # noqa: E402  after the setting above

_ALLOCATOR = "DUCKDB_JE_MALLOC_CONF"
_RELEASING = "retain:false,dirty_decay_ms:2000,muzzy_decay_ms:0"
"""By default DuckDB's allocator never releases address space, and that of this process is limited. After a few queries
of several gigabytes, other queries would fail (see ``opt.retain`` in the documentation of jemalloc)."""


def main() -> None:
    """Set the options of DuckDB's memory allocator, fork the translator process, and start the server.

    The options must be set before DuckDB is loaded. The fork must also happen before that, because a process with
    threads cannot be forked safely.
    """
    os.environ.setdefault(_ALLOCATOR, _RELEASING)
    forked = fork_translator()
    gc.disable()
    from emulators.kusto.process import main as run_process  # noqa: PLC0415  it loads DuckDB

    _enable_garbage_collection()
    run_process(forked)


def _enable_garbage_collection() -> None:
    """Enable garbage collection, and exempt all existing objects from it, because they exist until the process ends."""
    gc.freeze()
    gc.enable()


_enable_garbage_collection()
if __name__ == "__main__":
    main()
