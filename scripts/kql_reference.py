"""Update the generated table in docs/reference/kql.md (``python -m scripts.kql_reference``).

The table lists, by group, the KQL operators and functions that the query emulator adds to its translator library.
"""

from pathlib import Path
from typing import Any

from emulators.kusto.extensions import EXTENSIONS

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "kql.md"
START, END = "<!-- families: made by scripts/kql_reference.py -->", "<!-- end of families -->"


def build_function_group_table() -> str:
    """Return the Markdown table of the KQL operators and functions that the emulator adds to its translator library."""
    lines = ["| Family | Adds |", "|---|---|"]
    for family in sorted(EXTENSIONS, key=_get_short_module_name):
        added = ", ".join(f"`{name}`" for name in getattr(family, "SUPPORTED", ()))
        if added:
            lines.append(f"| {_get_short_module_name(family).replace('_', ' ')} | {added} |")
    return "\n".join(lines)


def replace_generated_table(document: str) -> str:
    """Return the text of the page kql.md, in which the generated table is replaced by an up-to-date one."""
    before, _, rest = document.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{build_function_group_table()}\n\n{END}{after}"


def _get_short_module_name(extension: Any) -> str:
    return str(extension.__name__).rpartition(".")[2]


if __name__ == "__main__":
    TARGET.write_text(replace_generated_table(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
