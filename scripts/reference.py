"""Writes docs/reference.md from the operations, the settings and the access rights: ``python scripts/reference.py``."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from functions import GROUPS  # noqa: E402  the path comes first
from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role  # noqa: E402
from shared.http.operations import Access, Operation  # noqa: E402
from shared.settings import Settings  # noqa: E402

TARGET = ROOT / "docs" / "reference.md"
CREDENTIALS = {
    Access.PUBLIC: "none",
    Access.TOKEN: "token",
    Access.KEYS: "API key, token or Entra ID token",
    Access.KEY_OR_TOKEN: "API key or token",
}

SETTINGS_NOTE = (
    "Read from the environment (app settings in the cloud, `local.settings.json` on a desk) on first use. An empty "
    "value counts as left out. The local host also reads `HOST` (127.0.0.1), `PORT` (7071) and `WORKSPACE_FILE` "
    "(samples/workspace.yaml)."
)


def build_reference() -> str:
    """Return the reference as Markdown."""
    parts = [
        "# Reference",
        "Made by `scripts/reference.py` from the code; a test fails when it is out of date.",
        "## Operations",
        _format_table(
            ("Operation", "Credential", "Access right", "What it does"), map(_operation_row, _list_operations())
        ),
        "## Access rights",
        "Rights of a role and rights given one by one add up.",
        _format_table(("Right", *Role), map(_right_row, AccessRight)),
        "## Settings",
        SETTINGS_NOTE,
        _format_table(("Setting", "Default", "Meaning"), map(_setting_row, Settings.model_fields)),
    ]
    return "\n\n".join(parts) + "\n"


def _list_operations() -> list[Operation]:
    return [operation for group in GROUPS for operation in group.operations]


def _operation_row(operation: Operation) -> tuple[str, ...]:
    right = f"`{operation.right}`" if operation.right else "any" if operation.access is not Access.PUBLIC else ""
    return f"`{operation.method} /{operation.route}`", CREDENTIALS[operation.access], right, operation.summary


def _right_row(right: AccessRight) -> tuple[str, ...]:
    return (f"`{right}`", *("yes" if right in ROLE_RIGHTS[role] else "" for role in Role))


def _setting_row(name: str) -> tuple[str, ...]:
    field = Settings.model_fields[name]
    return f"`{field.alias}`", f"`{field.default}`" if field.default != "" else "", field.description or ""


def _format_table(head: tuple[str, ...], rows: object) -> str:
    lines = [head, ("---",) * len(head), *rows]  # type: ignore[misc]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    TARGET.write_text(build_reference(), encoding="utf-8")
