"""Command that runs the function app locally: ``python -m local``.

One process with one event loop runs the same worker library and function_app.py as Azure, and emulators of Azure
services. Only the Kusto emulator is a child process. docs/how-to/local-host.md lists the differences from Azure and
from Core Tools.
"""

import gc
import os
import signal
import sys


def main() -> int:
    """Run the local host and return its exit code.

    For a fast start, the host is imported without garbage collection and without a search for pydantic plugins.
    """
    # Imports create objects that exist until the process ends; a garbage collection in between finds nothing to delete.
    gc.disable()
    # To find plugins of pydantic, the first model would read the metadata of every installed package. There are none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from local.command import main as run_host  # noqa: PLC0415  after the two settings above
    from shared.interpreter import exempt_objects_from_garbage_collection  # noqa: PLC0415  the same

    exempt_objects_from_garbage_collection()
    gc.enable()
    # Until the host installs its own handlers, a signal exits cleanly.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    return run_host()


if __name__ == "__main__":
    sys.exit(main())
