"""Tests that clients generated from the OpenAPI document compile and can do the tasks of the README."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.docs.recipes import CLIENTS, explain_missing_programs, read_blocks, read_token, run_program
from tests.node import find_node
from tests.node_suites import running
from tests.service.local_service import Service, wait_until

PAGE = "generated-clients"
KNOWN_COLUMN = '"avgTemperature":{"anyOf"'
EXPECTED = [
    r"chiller-sim-\d+ \S+.* admin@plant-a\.example",
    r"403 QUERY_NOT_APPROVED",
    r"1",
    r"\d+",
    r"completed timestamp,connection,deviceId,messageId,.*",
    r"Batch\.Released (True|true)",
    r".*Cooling water.*",
]
"""Lines that each program prints; the number of accepted messages can repeat."""


def save_document(plant: Service, folder: Path) -> dict[str, str]:
    """Save the OpenAPI document that an Editor receives.

    Return environment variables for the generated clients' programs.
    """
    caller = plant.create_client("editor@plant-a.example")
    # The service learns the columns of a query after its start.
    reply = wait_until(lambda: caller.get("/oi-api/openapi").raise_for_status(), lambda one: KNOWN_COLUMN in one.text)
    (folder / "openapi.json").write_bytes(reply.content)
    return {"URL": plant.url, "TOKEN": read_token(plant)}


def check_output(printed: str) -> None:
    """Check that the program printed the expected output of each task, in order."""
    assert re.fullmatch("\n(?:1\n)*".join(EXPECTED) + "\n", printed), printed


@pytest.mark.skipif(bool(explain_missing_programs()), reason=explain_missing_programs())
def test_generated_python_client_is_typed_and_runs_the_program_of_the_page(plant: Service, tmp_path: Path) -> None:
    """The client of openapi-python-client passes mypy --strict and runs the program on the page."""
    variables = save_document(plant, tmp_path)
    (tmp_path / "generator.yaml").write_text(read_blocks(PAGE, "yaml")[0], encoding="utf-8")
    [program] = read_blocks(PAGE, "python")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    generate = ["generate", "--path", "openapi.json", "--meta", "none", "--output-path", "workspace_client"]
    run_program([CLIENTS, "-m", "openapi_python_client", *generate, "--config", "generator.yaml"], tmp_path)
    # The generator leaves out an operation that it cannot express, with a warning only.
    generated = [path for path in tmp_path.glob("workspace_client/api/*/*.py") if path.name != "__init__.py"]
    paths = json.loads((tmp_path / "openapi.json").read_text(encoding="utf-8"))["paths"]
    assert len(generated) == sum(map(len, paths.values()))
    strict: list[str | Path] = [
        "--strict",
        "--python-executable",
        CLIENTS,
        "--cache-dir",
        "mypy-cache",
        "--config-file",
        "",
    ]
    run_program([sys.executable, "-m", "mypy", *strict, "workspace_client", "program.py"], tmp_path)
    check_output(run_program([CLIENTS, "program.py"], tmp_path, variables))


@pytest.mark.skipif(bool(running.find_missing_requirement()), reason=running.find_missing_requirement())
def test_generated_typescript_client_is_typed_and_runs_the_program_of_the_page(plant: Service, tmp_path: Path) -> None:
    """The types of openapi-typescript pass tsc --strict and, with openapi-fetch, run the program on the page."""
    variables = save_document(plant, tmp_path)
    (tmp_path / "node_modules").symlink_to(running.PACKAGES)
    [program] = read_blocks(PAGE, "typescript")
    (tmp_path / "tsconfig.json").write_text(read_blocks(PAGE, "json")[0], encoding="utf-8")
    (tmp_path / "program.mts").write_text(program, encoding="utf-8")
    node, packages = find_node(), running.PACKAGES
    assert node
    generate: list[str | Path] = [
        packages / "openapi-typescript" / "bin" / "cli.js",
        "openapi.json",
        "--output",
        "workspace.ts",
    ]
    run_program([node, *generate], tmp_path)
    run_program([node, packages / "typescript" / "bin" / "tsc"], tmp_path)
    check_output(run_program([node, "program.mjs"], tmp_path, variables))
