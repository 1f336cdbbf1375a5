"""Tests of the stored login of the command `oi`."""

import sys
from pathlib import Path

import click
import pytest
from oi.cli.stored_login import Login, get_login_path, remove_login, require_login, store_login_and_describe_location

from tests.client.fake_keyring import build_keyring


@pytest.fixture(autouse=True)
def _isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OI_URL", "OI_KEY", "OI_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_only_the_user_can_read_the_stored_login() -> None:
    """Without a keyring, the API key is stored in a file that only the user can read."""
    place = store_login_and_describe_location("https://plant.example", "oik_1")
    assert str(get_login_path()) in place
    assert get_login_path().stat().st_mode & 0o777 == 0o600
    assert require_login() == Login("https://plant.example", key="oik_1")


def test_a_login_during_another_login_fails_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two logins at once both succeed; the one that ends last is stored, and no other file remains."""
    replace = Path.replace

    def log_in_before_replacing(draft: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        store_login_and_describe_location("https://plant.example", "oik_2")
        return draft.replace(target)

    monkeypatch.setattr(Path, "replace", log_in_before_replacing)
    store_login_and_describe_location("https://plant.example", "oik_1")
    assert require_login() == Login("https://plant.example", key="oik_1")
    assert list(get_login_path().parent.iterdir()) == [get_login_path()]


def test_the_keyring_contains_only_the_key_of_the_last_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """A login at another address removes the key of the earlier login from the keyring, and a logout its own."""
    entries: dict[tuple[str, ...], str] = {}
    monkeypatch.setitem(sys.modules, "keyring", build_keyring(entries))
    for url, key in (
        ("https://plant.example", "oik_1"),
        ("https://plant.example", "oik_2"),
        ("https://b.example", "oik_3"),
    ):
        assert "keyring" in store_login_and_describe_location(url, key)
        assert entries == {("oi", url): key}
        assert require_login() == Login(url, key=key)
    remove_login()
    assert entries == {}


def test_environment_variables_have_priority_over_the_stored_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables OI_URL, OI_TOKEN and OI_KEY have priority over the stored login."""
    store_login_and_describe_location("https://plant.example", "oik_1")
    monkeypatch.setenv("OI_KEY", "oik_2")
    assert require_login() == Login("https://plant.example", key="oik_2")
    monkeypatch.setenv("OI_TOKEN", "jwt")
    assert require_login() == Login("https://plant.example", token="jwt")


def test_a_final_slash_of_an_address_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored API key is used for an address with a slash at its end, because it is the same address."""
    store_login_and_describe_location("https://plant.example", "oik_1")
    login = Login("https://plant.example", key="oik_1")
    assert require_login("https://plant.example/") == login
    monkeypatch.setenv("OI_URL", "https://plant.example/")
    assert require_login() == login


def test_a_stored_key_is_not_sent_to_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """If OI_URL differs from the address of the stored login, the stored API key is not sent."""
    store_login_and_describe_location("https://plant.example", "oik_1")
    monkeypatch.setenv("OI_URL", "https://other.example")
    with pytest.raises(click.UsageError, match=r"other\.example"):
        require_login()


def test_the_error_about_a_missing_login_names_the_login_command() -> None:
    """Without a stored login, the error names the command that stores a login."""
    with pytest.raises(click.UsageError, match="oi login"):
        require_login()


@pytest.mark.parametrize(
    "url",
    [
        "notaurl",
        "ftp://plant.example",
        "https://",
        "http://[",
        "http://plant.example",
        "https://plant.example:99999",
        "https://plant.example:port",
        "https://pla nt.example",
        "https://plant.example\n",
    ],
)
def test_a_credential_is_sent_only_to_a_secure_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of the service must begin with https, unless it is an address of this computer."""
    monkeypatch.setenv("OI_KEY", "oik_1")
    monkeypatch.setenv("OI_URL", url)
    with pytest.raises(click.UsageError, match="https"):
        require_login()
    for own in ("http://127.0.0.1:7071", "http://localhost:7071", "http://[::1]:7071"):
        monkeypatch.setenv("OI_URL", own)
        assert require_login() == Login(own, key="oik_1")


@pytest.mark.parametrize(
    "url",
    ["https://user:secret@plant.example", "https://secret@plant.example", "https://user:secret@plant.example:port"],
)
def test_an_address_with_a_password_is_refused_without_repeating_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address must not contain a user name or a password, because messages and logs contain the address."""
    monkeypatch.setenv("OI_KEY", "oik_1")
    monkeypatch.setenv("OI_URL", url)
    with pytest.raises(click.UsageError, match="user name or a password") as refused:
        require_login()
    assert "secret" not in refused.value.message


@pytest.mark.parametrize("name", ["OI_KEY", "OI_TOKEN"])
@pytest.mark.parametrize("value", ["oik_secret\r", "oik_secret 2", "oik_s\u00e9cret"])
def test_the_error_about_a_malformed_credential_names_only_its_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error about an invalid credential in a variable contains the variable's name but not its value."""
    monkeypatch.setenv("OI_URL", "https://plant.example")
    monkeypatch.setenv(name, value)
    with pytest.raises(click.UsageError, match=name) as refused:
        require_login()
    assert "cret" not in refused.value.message
