"""Tests of the client with which the workspace command changes a running service."""

from pathlib import Path

import pytest

from shared.commands.remote_workspace import RemoteWorkspace, plan_from_json, read_api_key
from shared.errors import WorkspaceError


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("https://plant.example", True),
        ("http://127.0.0.1:7071", True),
        ("http://[::1]:7071", True),
        ("http://localhost", True),
        ("http://plant.example", False),
        ("http://127.0.0.1.plant.example", False),
        ("https://user@plant.example", False),
        ("ftp://plant.example", False),
        ("plant.example", False),
    ],
)
def test_the_api_key_is_sent_only_encrypted_or_to_this_machine(url: str, *, is_allowed: bool) -> None:
    """The API key is sent only over https or to this machine, because plain http can be read in the network."""
    if is_allowed:
        RemoteWorkspace(url, "key")
        return
    with pytest.raises(WorkspaceError, match="https"):
        RemoteWorkspace(url, "key")


def test_the_key_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API key is read from the option, else from the file that a variable names, else from another variable."""
    for name in ("OI_KEY", "OI_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WorkspaceError, match="OI_KEY"):
        read_api_key(None)
    monkeypatch.setenv("OI_KEY", " from-variable\n")
    assert read_api_key(None) == "from-variable"
    for name in ("option", "variable"):
        (tmp_path / name).write_text(f"from-{name}-file\n", encoding="utf-8")
    monkeypatch.setenv("OI_KEY_FILE", str(tmp_path / "variable"))
    assert read_api_key(None) == "from-variable-file"
    assert read_api_key(tmp_path / "option") == "from-option-file"


def test_items_that_a_plan_retains_are_read_as_conflicts() -> None:
    """An item that a plan keeps unchanged is a conflict, unless it is kept because it was created over the API."""
    change = {"kind": "surface", "key": "s", "before": None, "after": {"lookup": "s"}}
    reasons = {"a": "created through the API", "b": "approved by a person"}
    kept = [{"kind": "surface", "key": key, "reason": reason} for key, reason in reasons.items()]
    plan = plan_from_json({"changes": [change], "kept": kept})
    assert [(each.key, each.verb) for each in plan.changes] == [("s", "Created")]
    assert [(each.key, each.conflict) for each in plan.retained] == [("a", False), ("b", True)]
