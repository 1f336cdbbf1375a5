"""List the modules for which no test module exists (``python -m scripts.modules_without_tests``).

The test module of ``shared/auth/tokens.py`` is ``tests/unit/shared/auth/test_tokens.py``. The tests of an adapter may
be the contract suite in ``tests/adapters``, which both adapters share. The tests of an endpoint group may be those over
HTTP in ``tests/service``. The tests of an emulator are in ``tests/emulators``, and those of a script may be in
``tests/docs`` or ``tests/infra``.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("functions", "shared", "local", "emulators", "scripts")


def iterate_modules_that_need_tests(root: Path) -> Iterator[Path]:
    """Yield the path, relative to the root, of each module that needs tests: one of its functions has statements."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if "node_modules" not in path.parts and _has_function_with_statements(path):
                yield path.relative_to(root)


def list_possible_test_paths(module: Path) -> list[Path]:
    """Return the paths, relative to the root, at which the test module of a module can be."""
    name = f"test_{module.parent.name if module.stem in ('__init__', '__main__') else module.stem}.py"
    paths = [Path("tests/unit") / module.parent / name]
    if module.parts[:2] == ("shared", "backends"):
        paths.append(Path("tests/adapters") / name.replace("test_cosmos_", "test_"))
    if module.parts[0] == "functions":
        paths.append(Path("tests/service") / name)
    if module.parts[0] == "scripts":
        # The tests of documents and templates run the scripts that write or check them.
        paths += [Path("tests/docs") / name, Path("tests/infra") / name]
    if module.parts[0] == "emulators":
        paths.append(Path("tests") / module.parent / name)
    return paths


def find_untested_and_count_testable_modules(root: Path) -> tuple[list[Path], int]:
    """Return the modules for which no test module exists, and the number of modules that require one."""
    modules = list(iterate_modules_that_need_tests(root))
    missing = [one for one in modules if not any((root / path).is_file() for path in list_possible_test_paths(one))]
    return missing, len(modules)


def _has_function_with_statements(module_path: Path) -> bool:
    """Return whether a module defines a function with statements; protocols, constants and empty packages do not."""
    tree = ast.parse(module_path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return not all(map(_has_empty_body, functions))


def _has_empty_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the body of a function consists only of a docstring or an ellipsis."""
    return all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in function.body)


def main() -> int:
    """Print the modules without tests and the share of tested modules; return 1 if the share is below --at-least."""
    parser = argparse.ArgumentParser(prog="python -m scripts.modules_without_tests")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="lowest share that passes")
    bound: float = parser.parse_args().at_least
    missing, total = find_untested_and_count_testable_modules(ROOT)
    for module in missing:
        print(module)  # noqa: T201  the list is the result
    share = 100 * (total - len(missing)) / total
    print(f"{total - len(missing)} of {total} modules ({share:.1f} %) have a test module of their name.")  # noqa: T201
    if share < bound:
        print(f"At least {bound:g} % of the modules must have a test module.", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
