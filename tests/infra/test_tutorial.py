"""Tests that the commands of docs/tutorial/deploy-to-azure.md run, with fakes of the programs that call Azure."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.azure_commands import PAGES
from tests.infra.templates import BICEP, to_returned_name

ROOT = BICEP.parents[1]
TUTORIAL = (ROOT / "docs" / "tutorial" / "deploy-to-azure.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
OUTPUTS = {
    "AZURE_RESOURCE_GROUP": "rg-oi-plant",
    "APP_NAME": "func-plant",
    "COSMOS_ENDPOINT": "https://cosmos.documents.azure.com:443/",
    "COSMOS_DATABASE": "workspace",
    "COSMOS_ACCOUNT_NAME": "cosmos-plant",
    "EVENT_HUBS_NAME": "evhns-plant",
    "INSIGHTS_NAME": "appi-plant",
    "KUSTO_NAME": "dec-plant",
    "DATA_STORAGE_NAME": "stdataplant",
    "KUSTO_DATABASE": "Plant",
    "VAULT_NAME": "kv-plant",
    "WEB_PUBSUB_NAME": "wps-plant",
    "WEB_PUBSUB_AUDIENCE": "audience-id",
}
AZ = """#!/usr/bin/env bash
echo "az $*" >>"$CALLS"
case "$*" in
  # Azure CLI accepts this option only together with --show-details.
  "functionapp list-flexconsumption-locations"*--runtime*) exit 1 ;;
  "functionapp list-flexconsumption-locations"*) printf 'westeurope\\nnortheurope\\n' ;;
  "functionapp list-flexconsumption-runtimes"*) printf '3.12\\n3.13\\n' ;;
  "ad app list"*) ;;
  "ad app create"*) echo audience-id ;;
  "ad app show"*) echo object-id ;;
  "ad signed-in-user show"*) echo person-id ;;
  "group exists"*) echo true ;;
  "storage account list"*) echo stdataplant ;;
  "storage container-rm exists"*) echo true ;;
  "storage container immutability-policy lock"*) echo Locked >"$CALLS.policy" ;;
  *immutabilityPeriodSinceCreationInDays*) echo 3653 ;;
  *"--query etag"*) echo '"1"' ;;
  "storage container immutability-policy show"*) cat "$CALLS.policy" 2>/dev/null || echo Unlocked ;;
  "cosmosdb list"*) echo cosmos-plant ;;
  "keyvault list"*) [ -e "$CALLS.deleted" ] || echo kv-plant ;;
  "group delete"*) touch "$CALLS.deleted" ;;
  "deployment sub show"*) cat "$OUTPUTS" ;;
esac
"""
# azd restores the capitals that Resource Manager removes.
AZD = """#!/usr/bin/env bash
echo "azd $*" >>"$CALLS"
if [ "$*" = "env get-values" ]; then
  jq -r 'to_entries[] | "\\(.key | ascii_upcase)=\\(.value.value | @json)"' "$OUTPUTS"
fi
"""
PYTHON = f"""#!/usr/bin/env bash
echo "python $*" >>"$CALLS"
case "$*" in
  *"workspace validate"*) PYTHONPATH={ROOT} exec {sys.executable} "$@" ;;
  *"workspace apply"*)
    [ "$(printenv STORES) $(printenv COSMOS_ENDPOINT)" = "azure https://cosmos.documents.azure.com:443/" ] || exit 3
    echo "key-of-${{!#}}" ;;
esac
"""
GH = """#!/usr/bin/env bash
echo "gh $*" >>"$CALLS"
case "$*" in
  "variable list"*) printf 'AZURE_ACTIVE_LOCATION\\tnortheurope\\nEXISTING_VAULT_NAME\\tkv-plant\\n' ;;
esac
"""
RECORDER = '#!/usr/bin/env bash\necho "{name} $*" >>"$CALLS"\n'


class _Healthy(BaseHTTPRequestHandler):
    """HTTP server that replies to health requests in place of the app."""

    def do_GET(self) -> None:
        """Reply to the two health routes; reject other routes."""
        self.send_response(200 if self.path in {"/healthz", "/readyz"} else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
        """Write no log."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of a server that replaces the app."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Healthy)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def read_blocks(heading: str = "", *, until: str = "") -> str:
    """Return the commands of the tutorial between two headings."""
    text = TUTORIAL[TUTORIAL.index(f"\n## {heading}") if heading else 0 :]
    return "\n".join(BLOCK.findall(text[: text.index(f"\n## {until}")] if until else text))


@dataclass
class Shell:
    """Strict bash in a copy of the checkout, which runs the commands of the tutorial and returns recorded calls."""

    root: Path
    home: Path
    address: str

    def run(self, script: str, typed: str = "") -> tuple[int, str, list[str]]:
        """Run commands; return the exit code, the output, and the recorded calls of fakes in order."""
        calls = self.root / "calls"
        environment = {
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "CALLS": str(calls),
            "OUTPUTS": str(self.root / "outputs.json"),
        }
        done = subprocess.run(
            ["bash", "-c", f"set -euo pipefail\n{script}"],
            cwd=self.root,
            env=environment,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr, calls.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def recording_shell(tmp_path: Path, address: str) -> Shell:
    """Return a shell in which fakes of programs that call Azure, npm or the package index record their calls."""
    root = tmp_path / "a checkout"
    shutil.copytree(ROOT / "scripts" / "azure", root / "scripts" / "azure")
    shutil.copytree(BICEP, root / "infra" / "bicep")
    (root / "samples").mkdir()
    shutil.copy(ROOT / "samples" / "workspace.yaml", root / "samples")
    stand_ins = {"bin/az": AZ, "bin/azd": AZD, ".venv/bin/python": PYTHON}
    names = {"bin/make": "make", "bin/node": "node", "scripts/smoke.sh": "smoke"}
    stand_ins |= {path: RECORDER.format(name=name) for path, name in names.items()}
    for path, text in stand_ins.items():
        program = root / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    outputs = {
        to_returned_name(name): {"type": "String", "value": value}
        for name, value in (OUTPUTS | {"APP_URL": address}).items()
    }
    (root / "outputs.json").write_text(json.dumps(outputs), encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    return Shell(root, home, address)


def _check_order(calls: list[str], *expected: str) -> None:
    """Check that the calls begin with the expected texts, in this order."""
    rest = iter(calls)
    for text in expected:
        assert any(call.startswith(text) for call in rest), f"{text} is missing, or at the wrong place"


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_the_tutorial_runs_from_top_to_bottom(recording_shell: Shell, environment: str) -> None:
    """Each command succeeds in order, each variable is set before its use, and no file is left in the checkout."""
    before = {path for path in recording_shell.root.rglob("*") if path.is_file()}
    script = read_blocks(until="The same with azd").replace("OI_ENVIRONMENT=dev", f"OI_ENVIRONMENT={environment}")
    code, printed, calls = recording_shell.run(script, typed="stdataplant\n")
    assert code == 0, printed
    region = f"--name workspace-{environment}-westeurope --location westeurope"
    _check_order(
        calls,
        "az login",
        "az account set",
        "az provider register",
        "az functionapp list-flexconsumption-runtimes --location westeurope",
        "az ad app create --display-name oi-",
        f"az deployment sub what-if {region}",
        f"az deployment sub create {region}",
        f"az deployment sub show --name workspace-{environment}-westeurope",
        "make package",
        "az functionapp deployment source config-zip --resource-group rg-oi-plant --name func-plant --src dist/app.zip",
        "az kusto database-principal-assignment create --resource-group rg-oi-plant --cluster-name dec-plant"
        " --database-name Plant",
        "python -m shared.commands.workspace validate",
        "python -m shared.commands.workspace apply",
        "az deployment group create",
        f"smoke {recording_shell.address}",
        *(
            [
                f"az deployment sub create {region}",
                f"smoke --without download {recording_shell.address}",
                "az storage container immutability-policy lock",
                "az lock delete --name audit-chains --resource-group rg-oi-prod --resource cosmos-plant",
            ]
            if environment == "prod"
            else []
        ),
        *(["az storage container immutability-policy delete"] if environment == "dev" else []),
        f"az group delete --name rg-oi-{environment}",
        *(["az keyvault purge --name kv-plant"] if environment == "dev" else []),
        f"az deployment sub delete --name workspace-{environment}-westeurope",
        "az ad app delete --id audience-id",
    )
    opened = [call for call in calls if call.startswith("az deployment sub create")]
    assert ["privateNetworking=false" in call for call in opened] == [True, False][: len(opened)]
    written = {path for path in recording_shell.root.rglob("*") if path.is_file()} - before
    assert {path.name for path in written} <= {"calls", "calls.policy", "calls.deleted"}
    home = recording_shell.home / ".oi" / environment
    keys = json.loads((home / "keys.json").read_text(encoding="utf-8"))
    assert keys == {f"{name}@plant-a.example": f"key-of-{name}@plant-a.example" for name in ("admin", "editor")}
    assert all(path.stat().st_mode & 0o077 == 0 for path in home.iterdir())
    locked = "export CHECKPOINTS_LOCKED=true" in (home / f"{environment}.env").read_text(encoding="utf-8")
    assert locked == (environment == "prod")


def test_the_section_on_azd_replaces_steps_4_to_7(recording_shell: Shell) -> None:
    """The section on azd replaces steps 4 to 7 and sets each variable that later steps use."""
    script = read_blocks(until="5. Deploy the templates") + read_blocks("The same with azd")
    script += read_blocks("7. Apply the workspace document", until="9. Close the network")
    code, printed, calls = recording_shell.run(script)
    assert code == 0, printed
    expected = ("azd auth login", "azd env new dev --location westeurope", "azd up", "azd env get-values")
    _check_order(calls, *expected, "python -m shared.commands.workspace apply", f"smoke {recording_shell.address}")


def test_a_new_shell_can_continue_the_tutorial(recording_shell: Shell) -> None:
    """In a new shell, the lines for new shells on the page and two files are sufficient for all later steps."""
    code, printed, _ = recording_shell.run(read_blocks(until="8. Open the live stream"))
    assert code == 0, printed
    again = "\n".join(
        line for line in TUTORIAL.splitlines() if line.startswith(("export OI_ENVIRONMENT=", "export OI_HOME="))
    )
    again += '\n. "$OI_HOME/$OI_ENVIRONMENT.env"\n. "$OI_HOME/outputs.env"\n'
    assert all(f"`{line}`" in TUTORIAL for line in again.splitlines()[2:])
    code, printed, _ = recording_shell.run(
        again + read_blocks("7. Apply the workspace document", until="8. Open the live stream")
    )
    assert code == 0, printed
    keys = recording_shell.home / ".oi" / "dev" / "keys.json"
    for _ in range(2):
        keys.unlink(missing_ok=True)
        code, printed, calls = recording_shell.run(
            again + read_blocks("8. Open the live stream", until="9. Close the network")
        )
        assert code == 0, printed
        _check_order(calls, f"smoke {recording_shell.address}")
        assert set(json.loads(keys.read_text(encoding="utf-8"))) == {"admin@plant-a.example", "editor@plant-a.example"}


def test_after_a_lock_the_same_shell_can_repeat_step_5(recording_shell: Shell) -> None:
    """After a lock, the same shell can repeat step 5.

    The step stops if CHECKPOINTS_LOCKED does not agree with Azure.
    """
    script = read_blocks(until="Undo").replace("OI_ENVIRONMENT=dev", "OI_ENVIRONMENT=prod")
    script += "\n"
    script += read_blocks("5. Deploy the templates", until="6. Deploy the app")
    code, printed, calls = recording_shell.run(script, typed="stdataplant\n")
    assert code == 0, printed
    assert sum(call.startswith("az deployment sub create") for call in calls) == 3


def test_settings_with_spaces_are_unchanged(recording_shell: Shell) -> None:
    """A setting with spaces is unchanged in a shell that reads the settings file of the tutorial."""
    script = read_blocks(until="5. Deploy the templates").replace(
        "AZURE_LOCATION=westeurope", 'AZURE_LOCATION="West Europe"'
    )
    script = script.replace('"operators@plant.example"', '"a@plant.example, b@plant.example"')
    script += '\nunset AZURE_LOCATION ALERT_EMAILS\n. "$OI_HOME/$OI_ENVIRONMENT.env"\n'
    code, printed, _ = recording_shell.run(script + 'echo "<$AZURE_LOCATION> <$ALERT_EMAILS>"')
    assert (code, printed.splitlines()[-1]) == (0, "<West Europe> <a@plant.example, b@plant.example>"), printed


def test_the_settings_file_contains_each_setting_of_the_page(recording_shell: Shell) -> None:
    """Step 4 stores each setting of its table, because a later deployment without the setting would change Azure."""
    chosen = {"ALERT_EMAILS": "a@plant.example", "COSMOS_CONSISTENCY": "BoundedStaleness"}
    chosen |= {"COSMOS_READ_REGIONS": "none", "OI_ADMIN": "ann@plant.example", "OI_EDITOR": "bea@plant.example"}
    step = TUTORIAL.partition("\n## 4. ")[2].partition("\n## 5. ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", step, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(chosen)
    script = read_blocks(until="5. Deploy the templates")
    for name, value in chosen.items():
        script, count = re.subn(rf'\b{name}="[^"]*"', f'{name}="{value}"', script)
        assert count == 1, name
    script += "\n" + "\n".join(f"unset {name}" for name in chosen) + '\n. "$OI_HOME/$OI_ENVIRONMENT.env"\n'
    code, printed, _ = recording_shell.run(script + "\n".join(f'echo "${name}"' for name in chosen))
    assert (code, printed.splitlines()[-len(chosen) :]) == (0, list(chosen.values())), printed


def test_the_variables_of_github_agree_with_the_settings_file(recording_shell: Shell) -> None:
    """Both environments of GitHub get the settings of the file; existing ones that are empty are deleted."""
    page = (ROOT / "docs" / "how-to" / "deploy-from-github.md").read_text(encoding="utf-8")
    [block] = [each for each in BLOCK.findall(page) if "gh variable set AZURE_TENANT_ID" in each]
    program = recording_shell.root / "bin" / "gh"
    # The environments prod and prod-preview have one of the optional variables each.
    listed = "case $4 in prod) echo COSMOS_CONSISTENCY x;; *) echo COSMOS_READ_REGIONS x;; esac"
    text = RECORDER.format(name="gh") + f'[ "$2" != list ] || {listed}\n'
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    start = read_blocks(until="5. Deploy the templates").replace("OI_ENVIRONMENT=dev", "OI_ENVIRONMENT=prod")
    for consistency, regions in (("", "northeurope"), ("BoundedStaleness", "")):
        (recording_shell.root / "calls").unlink(missing_ok=True)
        script = start.replace('COSMOS_CONSISTENCY=""', f'COSMOS_CONSISTENCY="{consistency}"')
        script = script.replace('COSMOS_READ_REGIONS="northeurope"', f'COSMOS_READ_REGIONS="{regions}"')
        code, printed, calls = recording_shell.run(f"{script}\n{block}")
        assert code == 0, printed
        for environment in ("prod", "prod-preview"):
            for name, value in (("COSMOS_CONSISTENCY", consistency), ("COSMOS_READ_REGIONS", regions)):
                options = f"{name} --env {environment}"
                exists = (name == "COSMOS_CONSISTENCY") == (environment == "prod")
                deletion = [f"gh variable delete {options}"] if exists else []
                expected = [f"gh variable set {options} --body {value}"] if value else deletion
                changes = rf"gh variable (set|delete) {options}( |$)"
                assert [call for call in calls if re.match(changes, call)] == expected


def _change_az(shell: Shell, case: str) -> None:
    """Let the fake of Azure CLI reply differently to some commands."""
    path = shell.root / "bin" / "az"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('case "$*" in\n', f'case "$*" in\n  {case} ;;\n', 1), encoding="utf-8")


def test_a_repeated_registration_does_not_replace_the_settings(recording_shell: Shell) -> None:
    """If the application exists already, step 4 prints its client id and leaves the settings file unchanged."""
    script = read_blocks(until="5. Deploy the templates")
    code, printed, _ = recording_shell.run(script)
    assert code == 0, printed
    settings = recording_shell.home / ".oi" / "dev" / "dev.env"
    before = settings.read_text(encoding="utf-8")
    _change_az(recording_shell, '"ad app list"*) echo other-id')
    # As a person types it: a shell that goes on after an error.
    _, printed, _ = recording_shell.run(f"set +e\n{script}")
    assert "exists, with this client id:\nother-id" in printed
    assert settings.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("page", "command", "failure"),
    [
        ("optional-parts-on-azure.md", "register-audience", '"ad app list"*) echo other-id'),
        ("operate.md", "keyvault key rotate --vault-name", '"keyvault key rotate"*) exit 1'),
    ],
)
def test_settings_without_a_value_are_not_deployed(
    recording_shell: Shell, page: str, command: str, failure: str
) -> None:
    """If a command cannot get the value of a setting, its block changes no settings file and deploys nothing."""
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    [block] = [each for each in BLOCK.findall(text) if command in each and "deploy-templates" in each]
    start = read_blocks(until="5. Deploy the templates").replace("OI_ENVIRONMENT=dev", "OI_ENVIRONMENT=prod")
    code, printed, _ = recording_shell.run(start)
    assert code == 0, printed
    settings = recording_shell.home / ".oi" / "prod" / "prod.env"
    before = settings.read_text(encoding="utf-8")
    _change_az(recording_shell, failure)
    known = f"export OI_ENVIRONMENT=prod OI_HOME=~/.oi/prod VAULT_NAME=kv-plant APP_URL={recording_shell.address}"
    known += f" CONSOLE_URLS={recording_shell.address}/console/"
    _, _, calls = recording_shell.run(f'set +e\n{known}\n. "$OI_HOME/prod.env"\n{block}')
    assert settings.read_text(encoding="utf-8") == before
    assert not any(call.startswith("az deployment sub create") for call in calls)


def test_a_failed_deployment_does_not_replace_the_outputs(recording_shell: Shell) -> None:
    """Only a successful deployment replaces the file with the deployment's outputs."""
    code, printed, _ = recording_shell.run(read_blocks(until="6. Deploy the app"))
    assert code == 0, printed
    outputs = recording_shell.home / ".oi" / "dev" / "outputs.env"
    before = outputs.read_text(encoding="utf-8")
    path = recording_shell.root / "bin" / "az"
    path.write_text(
        path.read_text(encoding="utf-8").replace("esac\n", '  "deployment sub create"*) exit 1 ;;\nesac\n'),
        encoding="utf-8",
    )
    # As a person types it: a shell that goes on after an error.
    recording_shell.run("set +e\n" + read_blocks(until="6. Deploy the app"))
    assert outputs.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("setting", ["AZURE_PRINCIPAL_ID", "WEB_PUBSUB_AUDIENCE"])
def test_an_empty_setting_stops_the_tutorial(recording_shell: Shell, setting: str) -> None:
    """If Azure returns no value for a setting, step 5 stops with the setting's name and creates nothing."""
    path = recording_shell.root / "bin" / "az"
    name = {"AZURE_PRINCIPAL_ID": "person-id", "WEB_PUBSUB_AUDIENCE": "audience-id"}[setting]
    path.write_text(path.read_text(encoding="utf-8").replace(f"echo {name}", "echo"), encoding="utf-8")
    code, printed, calls = recording_shell.run(read_blocks(until="6. Deploy the app"))
    assert code != 0
    assert f"{setting} is empty" in printed
    assert not any(call.startswith("az deployment sub") for call in calls)


def test_every_step_states_its_costs_and_how_to_undo_it() -> None:
    """Each step states its costs and how to undo it; a step with commands also says what they print."""
    steps = re.split(r"^## (?=\d)", TUTORIAL, flags=re.MULTILINE)[1:]
    assert [step[:2] for step in steps] == [f"{number}." for number in range(1, len(steps) + 1)]
    for step in steps:
        text = step.partition("\n## ")[0]
        assert "*Costs*" in text, step[:40]
    for step in steps[1:]:
        assert "*You see*" in step, step[:40]
    assert TUTORIAL.count("https://azure.microsoft.com/pricing/details/") > 10


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_documented_command_block_is_valid_bash(path: Path) -> None:
    """Each block of commands on the operators' pages has valid bash syntax."""
    found = BLOCK.findall(path.read_text(encoding="utf-8"))
    for block in found:
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{block}\n{done.stderr}"
    assert found or path.name == "azure.md"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_lines_of_operators_pages_have_at_most_120_characters(path: Path) -> None:
    """Lines of prose have at most 120 characters; tables and commands may be longer."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    long = [line for line in prose.splitlines() if len(line) > 120 and not line.startswith(("|", "    "))]
    # An address alone on a line cannot be wrapped.
    assert [line for line in long if " " in line.strip()] == []


def test_links_to_sections_name_existing_headings() -> None:
    """Each link to a section of an operators' page names an existing heading."""
    pages = {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("**/*.md")}
    anchors = {
        path: {_build_anchor(each) for each in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
        for path, text in pages.items()
    }
    for path in PAGES:
        for page, anchor in re.findall(r"\]\(([\w./-]+\.md)?#([\w-]+)\)", path.read_text(encoding="utf-8")):
            target = (path.parent / page).resolve() if page else path
            assert anchor in anchors[target], f"{path.name}: {page}#{anchor}"


def _build_anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_runbook_fails_over_and_returns(recording_shell: Shell) -> None:
    """A failover deploys to the second region; after the return, the next deployment is in the first region."""
    runbook = (ROOT / "docs" / "how-to" / "networks-failover-restore.md").read_text(encoding="utf-8")
    section = runbook[runbook.index("\n## Background jobs run in one app") : runbook.index("\n## Restore")]
    program = recording_shell.root / "bin" / "gh"
    program.write_text(GH, encoding="utf-8")
    program.chmod(0o755)
    # The tutorial is about one environment; the runbook about production.
    home = "OI_ENVIRONMENT=prod"
    start = read_blocks(until="6. Deploy the app").replace("OI_ENVIRONMENT=dev", home)
    script = start + "\n".join(BLOCK.findall(section)) + "\nscripts/azure/deploy-templates create prod --output none\n"
    code, printed, calls = recording_shell.run(script)
    assert code == 0, printed
    names = [re.findall(r"--name (\S+) --location (\S+)", call) for call in calls if "deployment sub create" in call]
    assert names == [
        [("workspace-prod-westeurope", "westeurope")],
        [("workspace-prod-northeurope", "northeurope")],
        [("workspace-prod-westeurope", "westeurope")],
    ]
    stop, storage, start = ("az functionapp stop", "az storage account failover", "az functionapp start")
    disable = "az functionapp config appsettings set"
    cosmos = "az cosmosdb failover-priority-change"
    _check_order(calls, cosmos, storage, "make package", disable, stop, stop, storage, cosmos, start, start)
    settings = (recording_shell.home / ".oi" / "prod" / "prod.env").read_text(encoding="utf-8")
    assert "AZURE_ACTIVE_LOCATION" not in settings
    # Not all of the three variables exist.
    assert [call for call in calls if call.startswith("gh variable delete")] == [
        f"gh variable delete {name} --env {environment}"
        for environment in ("prod", "prod-preview")
        for name in ("AZURE_ACTIVE_LOCATION", "EXISTING_VAULT_NAME")
    ]
    # The line that disables the background jobs was added and removed.
    parameters = "infra/bicep/prod.bicepparam"
    assert (recording_shell.root / parameters).read_bytes() == (ROOT / parameters).read_bytes()
