"""Write the generated part of docs/kql.md from the operator families: ``python -m scripts.kql_reference``."""

from pathlib import Path
from typing import Any

from emulators.kusto.extensions import EXTENSIONS

TARGET = Path(__file__).parents[1] / "docs" / "kql.md"
START, END = "<!-- families: made by scripts/kql_reference.py -->", "<!-- end of families -->"


def build_families() -> str:
    """Return the families and their operators as Markdown."""
    lines = ["| Family | Adds |", "|---|---|"]
    for family in sorted(EXTENSIONS, key=_name):
        added = ", ".join(f"`{name}`" for name in getattr(family, "SUPPORTED", ()))
        if added:
            lines.append(f"| {_name(family).replace('_', ' ')} | {added} |")
    return "\n".join(lines)


def update_document(document: str) -> str:
    """Return a document with a new generated part."""
    before, _, rest = document.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{build_families()}\n\n{END}{after}"


def _name(family: Any) -> str:
    return str(family.__name__).rpartition(".")[2]


if __name__ == "__main__":
    TARGET.write_text(update_document(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
