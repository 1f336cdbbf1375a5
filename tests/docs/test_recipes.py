"""Tests that the recipes for other programs work with a service that has the sample workspace."""

import base64
import json
import re
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.docs.recipes import CLIENTS, PAGES, explain_missing_programs, read_blocks, read_token, run_program
from tests.service.local_service import Service, wait_until

ADDRESS = "https://plant.example"
QUERY = "/oi-api/warm-queries/chiller-temperature-5m"


@pytest.fixture(scope="module")
def recipe_plant(plant: Service) -> Service:
    """Return the service with the sample workspace as soon as the query of the recipes returns rows."""
    viewer = plant.create_client("viewer@plant-a.example")
    wait_until(lambda: viewer.get(QUERY).json()["rowCount"], lambda rows: rows >= 3)
    return plant


def replace_address(text: str, plant: Service) -> str:
    """Return a text of a page, with the running plant's address instead of the example address."""
    assert ADDRESS in text
    # The time on the page may be more than 366 days ago when the test runs.
    yesterday = datetime.now(UTC) - timedelta(days=1)
    return text.replace(ADDRESS, plant.url).replace("2026-01-05T00:00:00Z", f"{yesterday:%Y-%m-%dT%H:%M:%SZ}")


def test_curl_prints_and_saves_rows(recipe_plant: Service, tmp_path: Path) -> None:
    """The curl commands on the page print rows as JSON and save a CSV file."""
    printed, saved = (replace_address(block, recipe_plant) for block in read_blocks("curl", "shell"))
    variables = {"TOKEN": read_token(recipe_plant)}
    assert json.loads(run_program(["bash", "-c", printed], tmp_path, variables))["rowCount"] >= 3
    run_program(["bash", "-c", saved], tmp_path, variables)
    assert (tmp_path / "temperature.csv").read_text().splitlines()[0].startswith("DeviceId,Timestamp,avgTemperature")


def test_client_credentials_are_exchanged_for_a_token(recipe_plant: Service, tmp_path: Path) -> None:
    """The command in the overview exchanges an API key, as client credentials, for a token."""
    [command] = read_blocks("README", "shell")
    variables = {"URL": recipe_plant.url, "KEY": recipe_plant.read_api_key("viewer@plant-a.example")}
    token = run_program(["bash", "-c", f'{command}\necho "$TOKEN"'], tmp_path, variables).strip()
    reply = recipe_plant.create_anonymous_client(bearer=token).get("/workspace/api/keys/whoami")
    assert reply.json()["principal"] == "viewer@plant-a.example"


@pytest.mark.parametrize("block", [0, 1], ids=["standard library", "pandas"])
def test_python_prints_rows(recipe_plant: Service, tmp_path: Path, block: int) -> None:
    """The Python programs on the page print the devices of the query."""
    program = replace_address(read_blocks("python", "python")[block], recipe_plant)
    printed = run_program([sys.executable, "-c", program], tmp_path, {"TOKEN": read_token(recipe_plant)})
    assert "chiller-sim-01" in printed


@pytest.mark.skipif(bool(explain_missing_programs()), reason=explain_missing_programs())
def test_polars_prints_rows(recipe_plant: Service, tmp_path: Path) -> None:
    """The Polars program on the page groups the rows by device."""
    program = replace_address(read_blocks("python", "python")[2], recipe_plant)
    assert "chiller-sim-01" in run_program([CLIENTS, "-c", program], tmp_path, {"TOKEN": read_token(recipe_plant)})


EXECUTE = """
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read("{path}", as_version=4)
notebook.cells.append(nbformat.v4.new_code_cell("print(len(day), chart.get_ylabel())"))
NotebookClient(notebook, kernel_name="python3").execute()
_, (_, picture), shown = (cell.outputs for cell in notebook.cells if cell.cell_type == "code")
print(shown[0].text, len(picture.data["image/png"]))
"""
"""Program that executes a notebook and prints the axis label and the size of the chart of its last cell."""


@pytest.mark.skipif(bool(explain_missing_programs()), reason=explain_missing_programs())
def test_notebook_draws_a_day_of_the_chillers(recipe_plant: Service, tmp_path: Path) -> None:
    """Ten lines of a notebook draw a chart of one day, with the signal's unit, starting from an API key."""
    path = PAGES / "chiller-day.ipynb"
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells[-1]["source"]) <= 10
    send_day_of_chiller(recipe_plant)
    variables = {
        "URL": recipe_plant.url,
        "KEY": recipe_plant.read_api_key("viewer@plant-a.example"),
        "IPYTHONDIR": str(tmp_path),
    }
    printed = run_program([CLIENTS, "-c", EXECUTE.format(path=path)], tmp_path, variables)
    readings, label, size = re.fullmatch(r"(\d+) (.+)\n (\d+)\n", printed).groups()  # type: ignore[union-attr]
    assert (int(readings) > 250, label, int(size) > 10_000) == (True, "Supply temperature in °C", True)


def send_day_of_chiller(plant: Service) -> None:
    """Store messages of a chiller for the last day, one message for each five minutes."""
    now = datetime.now(UTC)
    times = [now - timedelta(minutes=5 * index) for index in range(1, 280)]
    messages = [
        {
            "deviceId": "chiller-sim-01",
            "messageId": f"notebook-{index}",
            "timestamp": at.isoformat(),
            "temperature": 6.5 + index % 5 / 2,
        }
        for index, at in enumerate(times)
    ]
    editor = plant.create_client("editor@plant-a.example")
    assert editor.post("/oi-api/telemetry/chiller-sim", json=messages).json() == {"accepted": len(messages)}
    # The query of the notebook caches its rows, so another query waits for the messages.
    kql = 'Telemetry | where MessageId startswith "notebook-" | count'
    wait_until(
        lambda: editor.post("/oi-api/warm-queries", json={"query": kql}).json()["results"][0]["Count"],
        lambda count: count == len(messages),
    )


def test_duckdb_reads_the_file(recipe_plant: Service, tmp_path: Path) -> None:
    """DuckDB reads the Parquet file that the command on the page saves."""
    [command], [sql] = read_blocks("duckdb", "shell"), read_blocks("duckdb", "sql")
    run_program(["bash", "-c", replace_address(command, recipe_plant)], tmp_path, {"TOKEN": read_token(recipe_plant)})
    local = sql.replace("temperature.parquet", f"{tmp_path}/temperature.parquet")
    rows = duckdb.connect().execute(local).fetchall()
    assert [row[0] for row in rows] == ["chiller-sim-01", "chiller-sim-02", "chiller-sim-03"]


def test_grafana_sends_the_range_of_its_time_picker(recipe_plant: Service) -> None:
    """A request of the Grafana dashboard, with the time range in milliseconds, returns the columns of the panel."""
    dashboard = json.loads((PAGES / "grafana-dashboard.json").read_text(encoding="utf-8"))
    [target] = dashboard["panels"][0]["targets"]
    now = datetime.now(UTC)
    picked = {"${__from}": now - timedelta(hours=6), "${__to}": now + timedelta(minutes=1)}
    address = replace_address(target["url"], recipe_plant)
    for variable, time in picked.items():
        address = address.replace(variable, str(int(1000 * time.timestamp())))
    reply = recipe_plant.create_client("viewer@plant-a.example").get(address)
    assert reply.status_code == 200, reply.text
    row = reply.json()[target["root_selector"]][0]
    assert {column["selector"] for column in target["columns"]} <= set(row)


@pytest.mark.parametrize(("page", "language"), [("telegraf", "toml"), ("node-red", "json"), ("power-bi", "powerquery")])
def test_requests_of_other_programs_succeed(recipe_plant: Service, page: str, language: str) -> None:
    """The query addresses on a page can be requested with a token."""
    text = "".join(read_blocks(page, language))
    addresses = set(re.findall(rf"{ADDRESS}(/oi-api/warm-queries/[^\"\s]+)", text)) or {QUERY}
    caller = recipe_plant.create_client("viewer@plant-a.example")
    assert [caller.get(address).status_code for address in addresses] == [200] * len(addresses)


def test_client_credentials_of_node_red_are_accepted(recipe_plant: Service) -> None:
    """The token that the Node-RED flow requests with its body and header has the right to run queries."""
    flow = json.loads(read_blocks("node-red", "json")[0])
    [body] = re.findall(r"msg\.payload = '([^']+)'", "".join(node.get("func", "") for node in flow))
    key = recipe_plant.read_api_key("viewer@plant-a.example")
    secret = base64.b64encode(f"{key.split('_')[1]}:{key}".encode()).decode()
    headers = {"Authorization": f"Basic {secret}", "Content-Type": "application/x-www-form-urlencoded"}
    reply = recipe_plant.create_anonymous_client().post("/oauth2/token", content=body, headers=headers)
    assert (reply.status_code, reply.json()["scope"]) == (200, "Workspace.WarmQuery.Execute")


MESSAGE_TIME = "2026-02-01T08:00:00.123456Z"
NANOSECONDS = 1_769_932_800_123_456_000
LONG_TAGS = {"cluster": "x" * 120, "datacenter": "ü" * 120, "host": "rig-1"}

APPLY = """
import json, sys
from types import SimpleNamespace

class Text(str):
    def elem_ords(self):
        return self.encode()

load = lambda *_: None
encode = json.encoder.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
metrics, json = json.load(sys.stdin), SimpleNamespace(encode=lambda value: Text(encode(value)))
{source}
for metric in metrics:
    print(apply(SimpleNamespace(**metric)).tags["message_id"])
"""
"""Program that runs the function of a Starlark processor, with the parts of Starlark that Python lacks."""


def build_message_ids(tmp_path: Path, *metrics: dict[str, Any]) -> list[str]:
    """Return the ids that the Telegraf processor on the page gives to metrics."""
    [processor] = tomllib.loads(read_blocks("telegraf", "toml")[1])["processors"]["starlark"]
    (tmp_path / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    (tmp_path / "apply.py").write_text(APPLY.replace("{source}", processor["source"]), encoding="utf-8")
    command = ["bash", "-c", '"$0" apply.py < metrics.json', sys.executable]
    return run_program(command, tmp_path).split()


def build_metric(**changes: Any) -> dict[str, Any]:
    """Return a metric of Telegraf with more than 256 characters of tags."""
    return {"time": NANOSECONDS, "name": "disk", "tags": LONG_TAGS, "fields": {"free": 1}} | changes


def test_ids_of_telegraf_are_distinct_and_stable(tmp_path: Path) -> None:
    """Metrics with another time, name, tag or field name have different ids; a metric that is sent again has its id."""
    different = [
        build_metric(),
        *(build_metric(tags={**LONG_TAGS, "volume": f"v{number}"}) for number in range(4)),
        build_metric(tags={**LONG_TAGS, "zone": "v0"}),
        build_metric(name="diskio"),
        build_metric(time=NANOSECONDS + 1000),
        build_metric(fields={"used": 1}),
    ]
    ids = build_message_ids(tmp_path, *different, *different)
    first, again = ids[: len(different)], ids[len(different) :]
    assert len(set(first)) == len(different)
    assert again == first
    assert max(map(len, ids)) <= 32


def test_telemetry_of_telegraf_is_accepted(recipe_plant: Service, tmp_path: Path) -> None:
    """A message in the form that the page's Telegraf configuration builds is accepted."""
    [message_id] = build_message_ids(tmp_path, build_metric())
    message = {"deviceId": "rig-1", "messageId": message_id, "ts": MESSAGE_TIME, "metric": "disk"}
    editor = recipe_plant.create_client("editor@plant-a.example")
    reply = editor.post("/oi-api/telemetry/pump-rig", json=[{**message, "tags": {"host": "rig-1"}, "values": {"a": 1}}])
    assert reply.json() == {"accepted": 1}
