"""Tests of finding the query engine's address."""

from pathlib import Path

from shared.settings import EMBEDDED_ENGINE_URL_FILE, Settings
from shared.wiring import Services


async def test_the_engine_address_comes_from_setting_process_or_default(tmp_path: Path) -> None:
    """The engine's address is the setting's, or else the running engine process's, or else the default."""
    default = Services(Settings.read({"DATA_DIR": str(tmp_path)}))
    assert default.queries.get_engine_uri() == Settings().kusto_uri
    (tmp_path / EMBEDDED_ENGINE_URL_FILE).write_text("http://127.0.0.1:4242", encoding="utf-8")
    assert default.queries.get_engine_uri() == "http://127.0.0.1:4242"
    configured = Services(Settings.read({"DATA_DIR": str(tmp_path), "KUSTO_URI": "http://127.0.0.1:8"}))
    assert configured.queries.get_engine_uri() == "http://127.0.0.1:8"
    await default.close()
    await configured.close()
