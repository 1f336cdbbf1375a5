"""Tests of the workspace command with ``--url``, with which it changes a running service."""

import json
from pathlib import Path

import pytest
import yaml

from shared.commands.workspace import DONE, FAILED, REFUSED, main
from tests.service.local_service import Service


@pytest.fixture(scope="module")
def changeable_service(own_module_service: Service) -> Service:
    """Return a service that the tests of this module may change."""
    return own_module_service


@pytest.fixture
def admin_key(changeable_service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put the key of an administrator into the environment and return it."""
    key = changeable_service.read_api_key("admin@t")
    monkeypatch.setenv("OI_KEY", key)
    monkeypatch.delenv("OI_KEY_FILE", raising=False)
    return key


@pytest.mark.usefixtures("admin_key")
def test_export_diff_and_apply_over_https(
    changeable_service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An exported document can be edited, compared and applied; the API key comes from the environment."""
    assert main(["export", "--url", changeable_service.url]) == DONE
    document = yaml.safe_load(capsys.readouterr().out)
    file = tmp_path / "w.yaml"
    file.write_text(yaml.safe_dump(document))
    assert main(["diff", str(file), "--url", changeable_service.url]) == DONE
    assert "0 added, 0 changed, 0 removed" in capsys.readouterr().out
    document["surfaces"][0]["description"] = "Changed by the command"
    file = tmp_path / "w.json"
    file.write_text(json.dumps(document))
    for verb, changed in (("validate", 0), ("diff", 1), ("apply", 1), ("diff", 0)):
        assert main([verb, str(file), "--url", changeable_service.url]) == DONE
        output = capsys.readouterr()
        assert verb == "validate" or f"0 added, {changed} changed, 0 removed" in output.out
        assert output.err == ""
    assert main(["export", "--url", changeable_service.url, "--format", "json"]) == DONE
    assert json.loads(capsys.readouterr().out)["surfaces"][0]["description"] == "Changed by the command"


@pytest.mark.usefixtures("admin_key")
def test_errors_of_the_service_are_printed_with_lines_of_the_file(
    changeable_service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors of the service are printed with lines of the file, as errors of a local validation are."""
    file = tmp_path / "w.yaml"
    file.write_text("workspace: {id: plant-t, name: P}\nteem: []\n")
    assert main(["validate", str(file), "--url", changeable_service.url]) == REFUSED
    assert capsys.readouterr().err == f"{file}:2:1: teem: is not a known field; did you mean team?\n"
    file.write_text(
        "workspace: {id: other, name: P}\ntier: enterprise\nlimits: {requestsPerMinute: 1, concurrent: 1}\n"
    )
    assert main(["diff", str(file), "--url", changeable_service.url]) == REFUSED
    assert ":3:1: limits: is read-only" in capsys.readouterr().err


def test_the_api_key_can_be_in_a_file(
    changeable_service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API key is read from --key-file, else from OI_KEY_FILE, else from OI_KEY; without a key the command fails."""
    for name in ("OI_KEY", "OI_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert main(["export", "--url", changeable_service.url]) == FAILED
    file = tmp_path / "key"
    file.write_text(changeable_service.read_api_key("admin@t") + "\n")
    assert main(["export", "--url", changeable_service.url, "--key-file", str(file)]) == DONE
    monkeypatch.setenv("OI_KEY_FILE", str(file))
    assert main(["export", "--url", changeable_service.url]) == DONE
    file.write_text("oik_aaaaaaaa_wrong")
    assert main(["export", "--url", changeable_service.url]) == REFUSED


@pytest.mark.usefixtures("admin_key")
@pytest.mark.parametrize(
    "url",
    [
        "http://plant.example",
        "ftp://127.0.0.1",
        "https://user:secret@127.0.0.1",
        "nothing",
        "https://[::1",
        "http://127.0.0.1:9",
    ],
)
def test_the_api_key_is_sent_over_https_only(url: str, capsys: pytest.CaptureFixture[str], admin_key: str) -> None:
    """A URL without https that is not local, and an unreachable service, end the command with exit code 2."""
    assert main(["export", "--url", url]) == FAILED
    output = capsys.readouterr()
    assert output.err
    assert admin_key not in output.err + output.out


def test_as_option_and_url_exclude_each_other(changeable_service: Service, tmp_path: Path) -> None:
    """With --url, the command rejects the option --as, because the owner of the API key makes the changes."""
    with pytest.raises(SystemExit) as ended:
        main(["apply", str(tmp_path / "w.yaml"), "--url", changeable_service.url, "--as", "admin@t"])
    assert ended.value.code == FAILED
