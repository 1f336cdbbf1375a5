"""Tests that users cannot send requests to the ports of the service itself."""

from pathlib import Path

import pytest

from shared.outbound.addresses import AddressRefusedError, parse_outbound_url
from shared.settings import Settings
from shared.wiring import Services


@pytest.mark.parametrize(("port", "is_refused"), [(7071, True), (8089, True), (9999, True), (8443, False)])
async def test_the_service_does_not_call_itself(tmp_path: Path, port: int, *, is_refused: bool) -> None:
    """The ports of the service and its stores are rejected, even in an allowed network."""
    settings = {
        "DATA_DIR": str(tmp_path),
        "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "PUBLIC_URL": "http://127.0.0.1:7071",
        "WEB_PUBSUB_ENDPOINT": "http://127.0.0.1:8089",
        "OWN_PORTS": "9999, ",
    }
    services = Services(Settings.read(settings))
    url = parse_outbound_url(f"http://127.0.0.1:{port}/")
    if is_refused:
        with pytest.raises(AddressRefusedError):
            await services.outbound.http.require_allowed_host(url)
    else:
        await services.outbound.http.require_allowed_host(url)
    await services.close()
