"""App settings and host.json."""

from pathlib import Path

import pytest

from local.errors import StartError
from local.host.environment import HostJson, load_local_settings, read_host_json, resolve_settings


def test_defaults_without_files(tmp_path: Path) -> None:
    """An app without host.json and local.settings.json has the defaults of the Functions host."""
    load_local_settings(tmp_path)
    assert read_host_json(tmp_path) == HostJson("api", 100)


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_broken_host_json_is_refused(tmp_path: Path, text: str) -> None:
    """An invalid host.json stops the start with the name of the file."""
    (tmp_path / "host.json").write_text(text)
    with pytest.raises(StartError, match=r"host\.json is not"):
        read_host_json(tmp_path)


def test_settings_fill_in_binding_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """%NAME% is replaced by the app setting; a missing setting is named."""
    monkeypatch.setenv("HUB", "impulses")
    assert resolve_settings("a-%HUB%-%HUB%") == "a-impulses-impulses"
    with pytest.raises(StartError, match="NO_SUCH"):
        resolve_settings("%NO_SUCH%")
