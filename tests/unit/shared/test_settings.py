"""Tests of the settings of the service."""

import pytest
from pydantic import ValidationError

from shared.settings import Settings


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("https://plant.example", "https://plant.example"),
        ("https://plant.example/", "https://plant.example"),
        ("http://127.0.0.1:7071", "http://127.0.0.1:7071"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
    ],
)
def test_public_url_is_an_origin(value: str, expected: str) -> None:
    """PUBLIC_URL has scheme, host and port; one slash at its end is removed."""
    assert Settings.read({"PUBLIC_URL": value}).public_url == expected


@pytest.mark.parametrize(
    "value",
    [
        "plant.example",
        "ftp://plant.example",
        "https://",
        "https://plant.example/base",
        "https://plant.example?x=1",
        "https://plant.example#x",
        "https://user:secret@plant.example",
        "https://plant.example:port",
        "https://plant.example//",
    ],
)
def test_public_urls_with_more_than_an_origin_are_rejected(value: str) -> None:
    """A PUBLIC_URL with more than an origin is rejected with the setting's name."""
    with pytest.raises(ValidationError, match="PUBLIC_URL"):
        Settings.read({"PUBLIC_URL": value})


@pytest.mark.parametrize("name", ["CONTINUATION_SECRET", "WEBHOOK_SECRET_KEY"])
def test_an_unresolved_key_vault_reference_is_no_secret(name: str) -> None:
    """If Azure could not read a secret, the text of its reference is not used instead, because it is guessable."""
    reference = "@Microsoft.KeyVault(SecretUri=https://kv-prod.vault.azure.net/secrets/continuation)"
    unresolved, resolved = Settings.read({name: reference}), Settings.read({name: "s" * 64})
    field = name.lower()
    assert (getattr(unresolved, field), getattr(resolved, field)) == ("", "s" * 64)


def test_host_of_the_public_url_is_accepted() -> None:
    """The host in PUBLIC_URL, for example that of a gateway, is accepted as Host header."""
    assert "plant.example:8443" in Settings.read({"PUBLIC_URL": "https://plant.example:8443"}).list_accepted_hosts()


@pytest.mark.parametrize("own", ["mes-1", "MES-1"])
def test_the_services_own_account_is_not_a_data_store(own: str) -> None:
    """DATA_STORE_ACCOUNTS is rejected with its name if it contains the account of COSMOS_ENDPOINT, and only then."""
    resource = "/subscriptions/s/resourceGroups/g/providers/Microsoft.DocumentDB/databaseAccounts/"
    accounts = f"lab={resource}lab-1, mes={resource}{own}"
    environment = {"DATA_STORE_ACCOUNTS": accounts, "COSMOS_ENDPOINT": "https://mes-1.documents.azure.com:443/"}
    with pytest.raises(ValidationError, match="DATA_STORE_ACCOUNTS"):
        Settings.read(environment)
    for other in ("https://oi-state.documents.azure.com:443/", ""):
        assert Settings.read({**environment, "COSMOS_ENDPOINT": other}).data_store_accounts == accounts


def test_the_log_level_is_checked() -> None:
    """LOG_LEVEL is a log level in upper or lower case; another value is rejected with the setting's name."""
    assert Settings.read({"LOG_LEVEL": "warning"}).log_level == "WARNING"
    with pytest.raises(ValidationError, match=r"LOG_LEVEL\n.* must be DEBUG, INFO"):
        Settings.read({"LOG_LEVEL": "Information"})


def test_compaction_waits_at_most_a_year() -> None:
    """COMPACTION_QUIET_MINUTES is rejected with its name if it is more than a year or infinite."""
    assert Settings.read({"COMPACTION_QUIET_MINUTES": "525600"}).compaction_quiet_minutes == 525_600
    for value in ("525601", "inf"):
        with pytest.raises(ValidationError, match="COMPACTION_QUIET_MINUTES"):
            Settings.read({"COMPACTION_QUIET_MINUTES": value})


JOB_SCHEDULES = {str(field.alias) for name, field in Settings.model_fields.items() if name.endswith("_schedule")} - {
    "BACKGROUND_SCHEDULE"
}


@pytest.mark.parametrize("name", sorted(JOB_SCHEDULES))
def test_the_schedule_of_a_background_job_is_ncrontab(name: str) -> None:
    """The schedule of a background job is rejected with the setting's name if it is not an NCRONTAB expression."""
    assert getattr(Settings.read({name: "0 0 3 * * *"}), name.lower()) == "0 0 3 * * *"
    for value in ("@daily", "10m", "61 * * * * *"):
        with pytest.raises(ValidationError, match=f"{name}\n.*{value.replace('*', '[*]')}.* is not an NCRONTAB"):
            Settings.read({name: value})
