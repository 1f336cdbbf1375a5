"""List the modules that exactly one other module imports: ``python -m scripts.modules_imported_once [PACKAGE]``.

A reader who meets such a module has to open two files to understand one thing. It is merged into its only importer, or
its docstring says why it is a file of its own.
"""

import sys
from collections.abc import Iterator
from typing import Final

import grimp

PACKAGES: Final = ("functions", "shared", "local", "emulators")


def find_modules() -> Iterator[tuple[str, str]]:
    """Yield each module that exactly one other module imports, and that other module."""
    graph = grimp.build_graph(*PACKAGES)
    for module in sorted(graph.modules):
        importers = graph.find_modules_that_directly_import(module)
        # The modules of a package import it, too, so its __init__ does not count.
        if len(importers) == 1 and not graph.find_children(module):
            yield module, next(iter(importers))


def main() -> None:
    """Print the modules of a package, or of all, and their number."""
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    found = [(module, importer) for module, importer in find_modules() if module.startswith(prefix)]
    for module, importer in found:
        print(f"{module}  <-  {importer}")  # noqa: T201  the report
    print(f"{len(found)} modules are imported by exactly one other module")  # noqa: T201  the report


if __name__ == "__main__":
    main()
