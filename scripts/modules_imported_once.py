"""List the modules that only one other module imports (``python -m scripts.modules_imported_once [PACKAGE]``).

A reader of such a module must open two files to understand one thing. Merge the module into its only importer, or say
in its docstring, with the word "separate", why it is a separate file.

Three kinds of modules need no such sentence, because the layout of the code requires a separate file. The wiring is the
only importer of adapters and services: other code knows their ports. The documentation of an operation's replies is not
in the operation's module, because requests do not need it. A package that is a register, such as the KQL functions of
the Kusto emulator, imports all its modules in its ``__init__``.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import grimp

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("functions", "shared", "local", "emulators")
WIRING: Final = "shared.wiring"
REPLY_DOCS: Final = "functions.reply_docs."


class ModuleImport(NamedTuple):
    """Name of a module, and of the only other module that imports it."""

    module: str
    importer: str


def iterate_modules_imported_once() -> Iterator[ModuleImport]:
    """Yield each module that only one other module imports, with the importing module."""
    graph = grimp.build_graph(*PACKAGES)
    for module in sorted(graph.modules):
        importers = graph.find_modules_that_directly_import(module)
        # The modules of a package import it, too, so its __init__ does not count.
        if len(importers) == 1 and not graph.find_children(module):
            yield ModuleImport(module, next(iter(importers)))


def is_separation_required_by_layout(module: str, importer: str) -> bool:
    """Return whether the layout of the code requires that a module and its only importer are separate files."""
    is_wired = importer == WIRING or importer.startswith(f"{WIRING}.")
    return is_wired or module.startswith(REPLY_DOCS) or importer == module.rpartition(".")[0]


def has_reason_for_separation(module: str, root: Path = ROOT) -> bool:
    """Return whether the docstring of a module explains why the module is a separate file."""
    path = root / f"{module.replace('.', '/')}.py"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return "separate" in docstring.lower()


def main() -> int:
    """Print the modules that only one other module imports.

    Return 1 if more than ``--at-most`` modules give no reason.
    """
    parser = argparse.ArgumentParser(prog="python -m scripts.modules_imported_once")
    parser.add_argument("package", nargs="?", default="", help="list the modules of this package only")
    parser.add_argument("--at-most", type=int, metavar="NUMBER", help="highest number of modules without a reason")
    options = parser.parse_args()
    found = [each for each in iterate_modules_imported_once() if each.module.startswith(options.package)]
    unexplained = [
        each
        for each in found
        if not is_separation_required_by_layout(each.module, each.importer)
        and not has_reason_for_separation(each.module)
    ]
    for module, importer in found:
        note = "  (no reason)" if (module, importer) in unexplained else ""
        print(f"{module}  <-  {importer}{note}")  # noqa: T201  the report
    print(f"{len(found)} modules are imported by exactly one other module; {len(unexplained)} without a reason")  # noqa: T201  the report
    if options.at_most is not None and len(unexplained) > options.at_most:
        print(f"At most {options.at_most} of these modules may lack a reason.", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
