"""Tests that the documentation matches the code."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions import GROUPS
from scripts.reference import TARGET, build_reference_page
from shared.auth.rights import AccessRight
from shared.settings import Settings
from shared.webhooks.event_data import DESCRIPTIONS
from shared.webhooks.events import WebhookEventType

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|OVERLOADED|THROTTLED|UNAUTHENTICATED")
RAISERS = {
    "CosmosItemStore",
    "UnmatchedRequestError",
    "WorkspaceError",
    "build_invalid_field_error",
    "build_invalid_fields_error",
    "call_vault",
    "convert_sqlite_errors",
}


def test_the_reference_is_up_to_date() -> None:
    """docs/reference/api.md equals the output of scripts/reference.py."""
    assert TARGET.read_text(encoding="utf-8") == build_reference_page(), "run: .venv/bin/python scripts/reference.py"


def test_reference_is_complete() -> None:
    """The reference describes every operation, access right and setting."""
    text = build_reference_page()
    for group in GROUPS:
        for operation in group.operations:
            assert f"`{operation.method} /{operation.route}`" in text
            assert operation.summary.endswith(".")
    assert all(f"`{right}`" in text for right in AccessRight)
    assert all(f"`{field.alias}`" in text and field.description for field in Settings.model_fields.values())


def list_error_codes() -> Iterator[str]:
    """Return every error code that the code contains."""
    for path in [*ROOT.glob("shared/**/*.py"), *ROOT.glob("functions/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in RAISERS:
                arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
                texts = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
                yield from (text for text in texts if isinstance(text, str) and CODE.fullmatch(text))
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
                # A code that several modules use is a constant of its own name; GraphQL has codes of its own.
                name = getattr(node.target, "id", "")
                if node.value.value == name and CODE.fullmatch(name) and "graphql_api" not in path.parts:
                    yield name


def test_exactly_the_error_codes_are_documented() -> None:
    """docs/reference/errors.md lists exactly the error codes that the code contains."""
    documented = set(
        re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    raised = set(list_error_codes()) | {"INVALID_REQUEST"}
    assert raised - documented == set(), "raised but not in docs/reference/errors.md"
    assert documented - raised == set(), "in docs/reference/errors.md but never raised"


@pytest.mark.parametrize(
    "path",
    [*sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("*.md"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_between_documents_work(path: Path) -> None:
    """Every relative link names a file or folder that exists."""
    for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_the_message_of_the_webhook_guide_has_the_properties_of_the_event() -> None:
    """The message in docs/how-to/webhooks.md has the same properties as the example of its event type."""
    page = (ROOT / "docs" / "how-to" / "webhooks.md").read_text(encoding="utf-8")
    [message] = [json.loads(block) for block in re.findall(r'```json\n(\{"type": .*?)```', page, re.DOTALL)]
    assert message["data"].keys() == DESCRIPTIONS[WebhookEventType(message["type"])].example.keys()
