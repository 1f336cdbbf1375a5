"""Tests of the code snippets that run a query from other programs."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.console.visits import Console
from tests.node import find_node
from tests.service.local_service import ROOT, Service

HOSTILE = 'it\'s "$HOME" `id` $(id) ${x} \\ \\n #(lf) ## @f %41 a=b&c;d + ü ☃ 😀\ttab\nline'
BODY = {
    "name": "Echo",
    "surface": "cooling",
    "kql": "print echoed = text",
    "parameters": [{"name": "text", "type": "string"}],
}


@pytest.fixture
def echo_query(service: Service) -> Iterator[str]:
    """Yield the lookup (id in URLs) of a query that returns its parameter."""
    admin = service.create_client("admin@plant-a.example")
    assert (
        service.create_client("editor@plant-a.example").put("/oi-api/warm-queries/echo", json=BODY).status_code == 201
    )
    assert admin.post("/oi-api/warm-queries/echo/approve").status_code == 200
    yield "echo"
    assert admin.delete("/oi-api/warm-queries/echo").status_code == 204


def copy_snippet(page: Page, program: str) -> str:
    """Copy the snippet for a program from the page and return its text."""
    page.get_by_role("tab", name=program).click()
    block = page.get_by_role("region", name=re.compile("The call for"))
    text = block.inner_text()
    assert "eyJ" not in text
    return text


def run_program(command: list[str], token: str, **variables: str) -> str:
    """Run a program with a token in its environment and return its output."""
    environment = {**os.environ, **variables, "TOKEN": token, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_copied_snippets_for_curl_python_and_typescript_run(
    console: Console, service: Service, echo_query: str, tmp_path: Path
) -> None:
    """The snippets for curl, Python and TypeScript run as they are.

    A parameter with special characters arrives unchanged.
    """
    token = service.create_client("viewer@plant-a.example").headers["Authorization"].removeprefix("Bearer ")
    page = console.sign_in().open(f"queries/{echo_query}?p.text={quote(HOSTILE)}&limit=5", "Echo").page
    page.get_by_role("button", name="Copy as…").click()
    console.check_appearance("copy-as")
    curl, python, typescript = (copy_snippet(page, each) for each in ("curl", "Python", "TypeScript"))
    assert shutil.which("curl")
    assert json.loads(run_program(["sh", "-c", curl], token))["results"] == [{"echoed": HOSTILE}]
    compile(python, "copied", "exec")
    assert run_program([sys.executable, "-c", python], token).strip() == repr({"echoed": HOSTILE})
    program = find_node()
    assert program
    source = tmp_path / "copied.mts"
    source.write_text(f"declare const process: {{ env: Record<string, string> }};\n{typescript}", encoding="utf-8")
    check = [program, str(ROOT / "console/node_modules/typescript/bin/tsc"), "--strict", "--target", "es2022"]
    run_program([*check, "--lib", "es2022,dom,dom.iterable", "--module", "nodenext", "--types", "", str(source)], token)
    printed = run_program([program, str(source.with_suffix(".mjs"))], token)
    assert "echoed:" in printed
    assert "☃" in printed


def test_copied_texts_of_dashboards_are_well_formed(console: Console, echo_query: str) -> None:
    """The snippet for Grafana is JSON with the query's complete URL; the snippet for Power BI has an escaped value."""
    page = console.sign_in().open(f"queries/{echo_query}?p.text={quote(HOSTILE)}", "Echo").page
    page.get_by_role("button", name="Copy as…").click()
    query = json.loads(copy_snippet(page, "Grafana"))
    assert query["url"].startswith(f"{console.service.url}/oi-api/warm-queries/echo?p.text=it%27s")
    text = copy_snippet(page, "Power BI")
    assert 'Token = "TOKEN"' in text
    outside = re.sub(r'"(?:[^"]|"")*"', "", text)
    assert re.findall(r"#\(|`|\\|@|☃", outside) == []
    expect(page.get_by_role("dialog")).to_contain_text("Advanced editor")


def test_the_copied_snippet_of_an_ad_hoc_query_runs(console: Console, service: Service) -> None:
    """The snippet of an ad-hoc query runs its whole text, including quotes and line breaks."""
    token = service.create_client("editor@plant-a.example").headers["Authorization"].removeprefix("Bearer ")
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    page.get_by_label("KQL", exact=True).fill("print a = \"it's\",\n  b = 'x\"y'")
    page.get_by_role("button", name="Copy as…").click()
    curl, python = copy_snippet(page, "curl"), copy_snippet(page, "Python")
    rows = [{"a": "it's", "b": 'x"y'}]
    assert json.loads(run_program(["sh", "-c", curl], token))["results"] == rows
    assert run_program([sys.executable, "-c", python], token).strip() == repr(rows[0])
