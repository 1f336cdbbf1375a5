"""Tests of the console's developers page: addresses, commands and configurations."""

import json
import os
import shlex
import subprocess
from pathlib import Path

from playwright.sync_api import expect

from tests.console.visits import Console
from tests.service.local_service import Service


def test_the_commands_on_the_page_can_be_executed(console: Console, service: Service) -> None:
    """The commands on the page exchange a key for a token and list the queries."""
    page = console.sign_in("viewer@plant-a.example").open("developers", "Developers").page
    console.check_appearance("developers")
    exchange = page.get_by_role("region", name="Exchange of a key for a token with curl").inner_text()
    first = page.get_by_role("region", name="A first call with curl").inner_text()
    # The command reads the key from a terminal; the test uses standard input.
    script = exchange.replace("read -rs KEY", "read -r KEY") + "\n" + first
    environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
    key = service.read_api_key("viewer@plant-a.example")
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=environment,
        input=f"{key}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "pressure-5m" in [query["lookup"] for query in json.loads(done.stdout)["warmQueries"]]


def test_configurations_for_ai_assistants_are_valid(console: Console) -> None:
    """Each configuration for an assistant is valid and contains the address and a placeholder for the token."""
    page = console.sign_in("viewer@plant-a.example").open("developers", "Developers").page
    url = f"{console.service.url}/oi-api/mcp"
    command = shlex.split(page.get_by_role("region", name="Configuration of Claude Code").inner_text())
    assert command[:5] == ["claude", "mcp", "add", "--transport", "http"]
    assert command[6:] == [url, "--header", "Authorization: Bearer TOKEN"]
    for title, member in (("Claude Desktop", "mcpServers"), ("VS Code", "servers"), ("Cursor", "mcpServers")):
        page.get_by_role("tab", name=title).click()
        text = page.get_by_role("region", name=f"Configuration of {title}").inner_text()
        assert url in json.dumps(json.loads(text)[member]["plant-a"])
        assert "eyJ" not in text
    page.get_by_role("tab", name="Other").click()
    entry = json.loads(page.get_by_role("region", name="Configuration of Other").inner_text())["mcpServers"]["plant-a"]
    assert entry == {"type": "http", "url": url, "headers": {"Authorization": "Bearer TOKEN"}}


def test_links_and_openapi_download_work(console: Console, tmp_path: Path) -> None:
    """The downloaded OpenAPI document contains the caller's operations, and each link of the page works."""
    page = console.sign_in("viewer@plant-a.example").open("developers", "Developers").page
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the OpenAPI document").click()
    saved.value.save_as(tmp_path / "openapi.json")
    described = json.loads((tmp_path / "openapi.json").read_text())
    assert described["openapi"].startswith("3.1")
    assert "/oi-api/warm-queries/pressure-5m" in described["paths"]
    links = page.get_by_role("main").get_by_role("link")
    addresses = {link.get_attribute("href") or "" for link in links.all()}
    client = console.service.create_anonymous_client()
    for address in sorted(each for each in addresses if not each.startswith("#")):
        assert client.get(address).status_code == 200, address
    expect(page.get_by_role("link", name="GraphiQL")).to_have_attribute("href", "/v1/plant-a/graphiql")
