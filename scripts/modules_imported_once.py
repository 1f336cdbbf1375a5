"""List the modules that exactly one other module imports: ``python -m scripts.modules_imported_once [PACKAGE]``.

A reader of such a module must open two files to understand one thing. Merge the module into its only importer, or say
in its docstring why it is a separate file.
"""

import sys
from collections.abc import Iterator
from typing import Final

import grimp

PACKAGES: Final = ("functions", "shared", "local", "emulators")


def find_modules_imported_once() -> Iterator[tuple[str, str]]:
    """Yield pairs of a module that exactly one other module imports, and the importing module."""
    graph = grimp.build_graph(*PACKAGES)
    for module in sorted(graph.modules):
        importers = graph.find_modules_that_directly_import(module)
        # The modules of a package import it, too, so its __init__ does not count.
        if len(importers) == 1 and not graph.find_children(module):
            yield module, next(iter(importers))


def main() -> None:
    """Print the modules that exactly one module imports, of one package or all packages, and their number."""
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    found = [(module, importer) for module, importer in find_modules_imported_once() if module.startswith(prefix)]
    for module, importer in found:
        print(f"{module}  <-  {importer}")  # noqa: T201  the report
    print(f"{len(found)} modules are imported by exactly one other module")  # noqa: T201  the report


if __name__ == "__main__":
    main()
