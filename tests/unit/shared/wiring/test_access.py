"""Tests of the selection of stores for credentials and grants."""

from pathlib import Path

from shared.wiring import Services
from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_credential_and_grant_stores(find_store_classes: Choice) -> None:
    """The setting STORES selects the stores; credentials and grants are in stores of the same kind."""
    assert find_store_classes(lambda services: services.access.credential_store) == (
        "SqliteCredentialStore",
        "CosmosCredentialStore",
    )
    assert find_store_classes(lambda services: services.access.grant_store) == ("SqliteGrantStore", "CosmosGrantStore")


async def test_the_local_signing_key_is_a_file(local_services: Services, tmp_path: Path) -> None:
    """The local signing key is a file, created at its first use and read again after a restart."""
    assert not (tmp_path / "signing-key.pem").exists()
    key_id = await local_services.access.signing_key.get_key_id()
    [public] = await local_services.access.signing_key.load_public_keys()
    assert (public["kid"], (tmp_path / "signing-key.pem").exists()) == (key_id, True)
