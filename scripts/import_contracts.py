"""Rule for import-linter: modules may import only some subpackages of a package such as ``azure``.

Import-linter treats all packages below ``azure`` as the single external module ``azure``. This contract reads the
import statements themselves, so that it can allow ``azure.functions``, for example, and forbid all other packages.
"""

import re
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

_IMPORT = re.compile(r"\s*(?:from|import)\s++(?P<module>[\w.]++)(?:\s++import\s++(?P<name>\w++))?")


class AllowedSubpackages(Contract):
    """Import-linter contract: the source modules may import nothing below ``package`` except ``allowed``."""

    source_modules = fields.ListField(subfield=fields.ModuleField())
    package = fields.StringField()
    allowed = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002, FBT001  the library's signature
        """Check each import statement of the source modules; return a result that contains the forbidden statements."""
        package, allowed = str(self.package), [str(name) for name in self.allowed]  # type: ignore[attr-defined]
        sources = [str(module) for module in self.source_modules]  # type: ignore[attr-defined]
        importers = graph.find_modules_that_directly_import(package) if package in graph.modules else frozenset()
        wrong = [
            f"{importer}, line {detail['line_number']}: {detail['line_contents']}"
            for importer in sorted(importers)
            if any(importer == source or importer.startswith(f"{source}.") for source in sources)
            for detail in graph.get_import_details(importer=importer, imported=package)
            if not is_import_allowed(detail["line_contents"], allowed)
        ]
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the forbidden import statements."""
        metadata: dict[str, Any] = check.metadata
        for line in metadata["wrong"]:
            output.print_error(line)


def is_import_allowed(statement: str, allowed_modules: list[str]) -> bool:
    """Return whether an import statement imports an allowed package or one of its modules."""
    found = _IMPORT.match(statement)
    if found is None:
        return False
    modules = [found["module"], f"{found['module']}.{found['name']}"]
    return any(module == name or module.startswith(f"{name}.") for module in modules for name in allowed_modules)
