"""Tests of the URLs that manage orchestrations."""

import json
import stat
from pathlib import Path

from emulators.durable.management_urls import ManagementUrls, load_or_create_system_key

URLS = ManagementUrls("http://127.0.0.1:7071", "Hub", "secret")


def test_each_management_url_contains_instance_hub_and_key() -> None:
    """Each URL contains the instance id, the task hub and the key; special characters in the id are encoded."""
    urls = URLS.build_management_urls("a/b?c", "Other")
    assert urls.pop("id") == "a/b?c"
    for url in urls.values():
        assert url.startswith("http://127.0.0.1:7071/runtime/webhooks/durabletask/instances/a%2Fb%3Fc")
        assert url.endswith("taskHub=Other&connection=Storage&code=secret")


def test_the_client_binding_has_the_property_names_of_the_sdk() -> None:
    """The client binding has the property names of the SDK, and a placeholder for the instance id."""
    binding = json.loads(URLS.build_client_binding_json())
    assert binding["taskHubName"] == "Hub"
    assert binding["managementUrls"]["id"] == "INSTANCEID"
    assert binding["rpcBaseUrl"] == "http://127.0.0.1:7071/runtime/webhooks/durabletask/rpc/secret/"


def test_the_system_key_survives_a_restart(tmp_path: Path) -> None:
    """The key stays the same after a restart; only the file's owner can read it; an empty key file gets a new key."""
    path = tmp_path / "key"
    key = load_or_create_system_key(path)
    assert load_or_create_system_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("", encoding="ascii")
    assert load_or_create_system_key(path) not in {"", key}
