"""Write the page that compares KQL with the local query engine, and the KQL names for the console's editor.

Usage: ``python -m scripts.kql_language``.

The functions, aggregates, plugins and operators of KQL are those of Microsoft's language service, in the file
``emulators/kusto/language.json``. With ``--lists`` the script reads them from the npm package in tests/node_suites,
which requires Node.js, and writes this file.
"""

import argparse
import json
import re
import subprocess
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from emulators.kusto.errors import QueryError
from emulators.kusto.extensions import EXTENSIONS
from emulators.kusto.extensions.sources import TABLE_FUNCTIONS
from emulators.kusto.translate import translate
from emulators.kusto.translator_process import patch_translator_library
from scripts.kql_exclusions import EXCLUSIONS, OPERATORS
from scripts.kql_known_differences import DIFFERENCES

ROOT = Path(__file__).parents[1]
LANGUAGE = ROOT / "emulators" / "kusto" / "language.json"
TARGET = ROOT / "docs" / "reference" / "kql-language.md"
EDITOR = ROOT / "console" / "src" / "pages" / "queries" / "kql" / "languageNames.ts"
_EDITOR_WIDTH = 118
_ALIASES = {"limit", "order"}
"""Second names of the operators ``take`` and ``sort``; the language service lists only the first names."""

_EDITOR_MODULE = """\
// Names of KQL by Microsoft's language service; written by `python -m scripts.kql_language`.

/** Operators that stand after a pipe. */
export const OPERATORS: readonly string[] = `
{operators}
`
  .trim()
  .split(/\\s+/);

/** Functions with their parameters, with those that aggregate and the plugins of `evaluate`. */
export const SIGNATURES: readonly string[] = `
{signatures}
`
  .trim()
  .split(/\\n\\s*/);

/** Names of the functions. */
export const FUNCTIONS: readonly string[] = SIGNATURES.map((each) => each.slice(0, each.indexOf("(")));
"""
_SUITES = ROOT / "tests" / "node_suites"
_NOTE = re.compile(r"([\w-]+(?: by| [\w-]+)?) \((.+)\)")
_REFUSED = "is not supported by the embedded query engine"
_HEAD = """# KQL of the local engine and of Data Explorer

This page lists what the local query engine supports of KQL. `python -m scripts.kql_language` writes it: the names come
from Microsoft's KQL language service (npm package `@kusto/language-service-next` 12.4.1), without hidden and obsolete
ones. [KQL locally](kql.md) explains the rules by examples.
"""
_DIFFERENCES_HEAD = """
## Known differences

The tests compare random queries with the language service: whether a query is accepted, and the names and types of its
columns. They permit these differences only.

| Construct | Difference and reason |
|---|---|
"""


def read_kql_names_by_kind() -> dict[str, Any]:
    """Read the functions, aggregates, plugins and operators of KQL from the file ``language.json``, by kind."""
    language: dict[str, Any] = json.loads(LANGUAGE.read_text(encoding="utf-8"))
    return language


def read_kql_names_from_service(node_path: str = "node") -> dict[str, Any]:
    """Run Microsoft's KQL language service under Node.js; return its functions, aggregates and other names, by kind.

    Args:
        node_path: path of Node.js.
    """
    completed = subprocess.run(  # noqa: S603  the path of Node.js, and a fixed script
        [node_path, str(_SUITES / "kusto_language.mjs")],
        input='{"lists": true}',
        capture_output=True,
        text=True,
        check=True,
    )
    language: dict[str, Any] = json.loads(completed.stdout)
    return language


def format_kql_names(names_by_kind: Mapping[str, Any]) -> str:
    """Format KQL names by kind as JSON with one name per line, so that diffs are readable."""
    parts = []
    for kind, symbols in names_by_kind.items():
        lines = ",\n".join(json.dumps(symbol, separators=(",", ":")) for symbol in symbols)
        parts.append(f'"{kind}": [\n{lines}\n]')
    return "{" + ",\n".join(parts) + "}\n"


def patch_translator_and_install_extensions() -> None:
    """Patch the KQL translator library in this process in the same way as the query engine does."""
    patch_translator_library()
    for extension in EXTENSIONS:
        extension.install_into_translator()


def find_supported_names(names_by_kind: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the names of the KQL functions, aggregates, plugins and operators that the engine supports, by kind."""
    calls = {
        "functions": ("print v = 1 | extend x = {name}({arguments})", "{name}()"),
        "aggregates": ("print v = 1 | summarize x = {name}({arguments})", "{name}()"),
        "plugins": ("print v = 1 | evaluate {name}()", "evaluate {name}"),
    }
    supported = {}
    for kind, (query, construct) in calls.items():
        supported[kind] = {
            symbol["name"]
            for symbol in names_by_kind[kind]
            if not _is_construct_unknown(_build_query_with_call(query, symbol), construct.format(name=symbol["name"]))
        }
    known = {kind for kind in names_by_kind["operators"] if kind in OPERATORS}
    return {
        **supported,
        "operators": {kind for kind in known if _translate_and_get_error_or_empty(OPERATORS[kind][1]) == ""},
    }


def _list_names_of_kind(names_by_kind: Mapping[str, Any], kind: str) -> list[str]:
    return [symbol["name"] for symbol in names_by_kind[kind]]


def _build_query_with_call(query_template: str, function: Mapping[str, Any]) -> str:
    """Build a KQL query that calls a function, from a template with the placeholders ``{name}`` and ``{arguments}``.

    For functions in ``TABLE_FUNCTIONS``, the query consists of the call only, without the template.
    """
    if function["name"] in TABLE_FUNCTIONS:
        return f"{function['name']}('Telemetry')"
    return query_template.format(name=function["name"], arguments=", ".join(["1"] * function["least"]))


def _is_construct_unknown(kql: str, construct: str) -> bool:
    """Return whether the local query engine rejects a query because it does not know the given KQL construct."""
    message = _translate_and_get_error_or_empty(kql)
    return f"'{construct}' {_REFUSED} [" in message or message.endswith(f"'{construct}' {_REFUSED}")


def _translate_and_get_error_or_empty(kql: str) -> str:
    """Translate a query with the local engine; return its error message, or an empty string if there is no error."""
    try:
        translate(kql, {"Telemetry": ["Timestamp", "DeviceId", "Payload"]}, [], {})
    except QueryError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  the call has no valid arguments, and the library can fail on them
        return type(error).__name__
    return ""


def build_kql_comparison_page(names_by_kind: Mapping[str, Any]) -> str:
    """Build the reference page that compares KQL with the local engine, as Markdown."""
    supported, notes = find_supported_names(names_by_kind), _collect_function_notes()
    parts = [_HEAD]
    for kind, title in (("functions", "Scalar functions"), ("aggregates", "Aggregates"), ("plugins", "Plugins")):
        names = _list_names_of_kind(names_by_kind, kind)
        parts.append(_format_section(title, {name: name for name in names}, supported[kind], notes))
    operators = {
        kind: OPERATORS.get(kind, (_operator_name_from_syntax_kind(kind), ""))[0] for kind in names_by_kind["operators"]
    }
    parts.append(_format_section("Tabular operators", operators, supported["operators"], notes))
    rows = "\n".join(f"| {construct} | {reason} |" for construct, reason in DIFFERENCES.items())
    return "\n".join(parts) + _DIFFERENCES_HEAD + rows + "\n"


def build_editor_names_module(names_by_kind: Mapping[str, Any]) -> str:
    """Build the TypeScript module with the KQL names that the console's editor highlights and completes."""
    operators = {
        OPERATORS.get(kind, (_operator_name_from_syntax_kind(kind), ""))[0] for kind in names_by_kind["operators"]
    }
    symbols = {each["name"]: each for kind in ("functions", "aggregates", "plugins") for each in names_by_kind[kind]}
    names = sorted({name.partition(" ")[0] for name in operators} | _ALIASES)
    wrapped = textwrap.fill(" ".join(names), _EDITOR_WIDTH, break_on_hyphens=False, break_long_words=False)
    signatures = "\n".join(format_function_signature(symbols[name]) for name in sorted(symbols))
    return _EDITOR_MODULE.format(operators=textwrap.indent(wrapped, "  "), signatures=textwrap.indent(signatures, "  "))


def format_function_signature(function: Mapping[str, Any]) -> str:
    """Return the longest signature of a function, such as ``round(number, [precision])``."""
    parameters: Sequence[Mapping[str, Any]] = max(
        (signature["parameters"] for signature in function["signatures"]), key=len, default=()
    )
    shown = []
    for index, parameter in enumerate(parameters):
        name = parameter["name"]
        optional = parameter.get("least", 1) == 0 or index >= function["least"]
        shown.append(f"[{name}]" if optional else name)
        if parameter.get("most", 1) > 1:
            shown.append("...")
    return f"{function['name']}({', '.join(shown)})"


def _operator_name_from_syntax_kind(syntax_kind: str) -> str:
    return "-".join(re.findall(r"[A-Z][a-z]*", syntax_kind.removesuffix("Operator"))).lower()


def _collect_function_notes() -> dict[str, str]:
    """Return the notes of the engine's extensions about functions that are only partly supported, by function name."""
    entries = (entry for extension in EXTENSIONS for entry in getattr(extension, "SUPPORTED", ()))
    return {found[1].removeprefix("evaluate "): found[2] for entry in entries if (found := _NOTE.fullmatch(entry))}


def _format_section(
    title: str, shown_names: Mapping[str, str], supported_names: set[str], notes: Mapping[str, str]
) -> str:
    full = [shown for name, shown in shown_names.items() if name in supported_names and shown not in notes]
    limited = [shown for name, shown in shown_names.items() if name in supported_names and shown in notes]
    missing = [name for name in shown_names if name not in supported_names]
    lines = [f"\n## {title}\n", f"Supported: {_join_names(full) or 'none'}.\n"]
    if limited:
        lines += [
            "| Supported with a note | Note |",
            "|---|---|",
            *(f"| `{name}` | {notes[name]} |" for name in limited),
            "",
        ]
    if missing:
        lines += ["| Runs on Data Explorer only | Reason |", "|---|---|"]
        lines += [f"| `{shown_names[name]}` | {EXCLUSIONS.get(name, 'not supported yet')} |" for name in missing]
    return "\n".join(lines).rstrip("\n") + "\n"


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> None:
    """Write the reference page and the editor's names; with ``--lists``, first update language.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", action="store_true", help="read the names from the language service first")
    if parser.parse_args().lists:
        LANGUAGE.write_text(format_kql_names(read_kql_names_from_service()), encoding="utf-8")
    patch_translator_and_install_extensions()
    TARGET.write_text(build_kql_comparison_page(read_kql_names_by_kind()), encoding="utf-8")
    EDITOR.write_text(build_editor_names_module(read_kql_names_by_kind()), encoding="utf-8")


if __name__ == "__main__":
    main()
