"""Tests of the scripts for operators, which call fakes of the Azure CLI and azd."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.infra.templates import BICEP

SCRIPTS = BICEP.parents[1] / "scripts" / "azure"
AZ = """#!/usr/bin/env bash
state=$(cat "$0.state")
case "$*" in
  *"group exists"*) [ "$state" = None ] && echo false || echo true ;;
  *"account list"*) echo stdataprod ;;
  *"container-rm exists"*) echo true ;;
  *"--query state"*) echo "$state" ;;
  *"--query etag"*) echo '"1"' ;;
  *immutabilityPeriodSinceCreationInDays*) echo 3653 ;;
  "ad app show --id client-1 "*) echo '{"id": "object-1", "addresses": ["https://a/console/"]}' ;;
  "rest "*) echo "$*" ;;
  *"immutability-policy lock"*) echo Locked >"$0.state" ;;
  *"immutability-policy delete"*"--if-match "*) echo Removed >"$0.state" ;;
  *) echo "unexpected: $*" >&2; exit 3 ;;
esac
"""
AZD = """#!/usr/bin/env bash
echo "azd $*" >>"$0.calls"
if [ "$*" = "env get-values" ]; then echo "DATA_STORAGE_NAME=\\"$(cat "$0.account")\\""; fi
"""
BICEP_CLI = """#!/usr/bin/env bash
echo "$* $AZURE_LOCATION ${AZURE_ACTIVE_LOCATION:-}" >>"$0.calls"
if [ "${AZURE_ENV_NAME:-}" = Plant_1 ]; then echo "Error: environmentName must have 2 to 12 letters" >&2; exit 1; fi
if [ "$1 $2" = "$(cat "$0.warns")" ]; then echo "main.bicep(1,1) : Warning BCP318" >&2; fi
if [ "$1" = snapshot ]; then echo "{}" >"${2%.bicepparam}.snapshot.json"; fi
"""


@pytest.fixture
def fake_tools(tmp_path: Path) -> Path:
    """Return a folder with fakes of az and azd."""
    for name, text in (("az", AZ), ("azd", AZD), ("bicep", BICEP_CLI)):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    return tmp_path


def run_script(fake_tools: Path, script: str, *arguments: str, typed: str = "", **environment: str) -> tuple[int, str]:
    """Run a script with typed input; return its exit code and its output."""
    path = f"{fake_tools}{os.pathsep}{os.environ['PATH']}"
    reply = subprocess.run(
        [SCRIPTS / script, *arguments],
        input=typed,
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return reply.returncode, reply.stdout + reply.stderr


@pytest.mark.parametrize(("before", "after"), [("Unlocked", "Removed"), ("Locked", "Locked"), ("None", "None")])
def test_only_an_unlocked_policy_is_removed(fake_tools: Path, before: str, after: str) -> None:
    """Before an environment is deleted, the script removes an unlocked policy and leaves a locked or missing one."""
    (fake_tools / "az.state").write_text(before, encoding="utf-8")
    code, printed = run_script(fake_tools, "remove-checkpoint-policy", "rg-oi-dev")
    assert (code, "stdataprod" in printed) == (0, before == "Unlocked")
    assert (fake_tools / "az.state").read_text(encoding="utf-8").strip() == after


def test_addresses_of_the_console_are_added(fake_tools: Path) -> None:
    """The script adds addresses to those of the application, each once."""
    (fake_tools / "az.state").write_text("None", encoding="utf-8")
    arguments = ("client-1", "https://a/console/", "https://b/console/")
    code, printed = run_script(fake_tools, "add-redirect-addresses", *arguments)
    assert code == 0, printed
    assert "--url https://graph.microsoft.com/v1.0/applications/object-1 " in printed
    assert '--body {"spa":{"redirectUris":["https://a/console/","https://b/console/"]}}' in printed
    assert run_script(fake_tools, "add-redirect-addresses", "client-1")[0] == 1


def test_lock_is_stored_for_azd_and_scripts(fake_tools: Path) -> None:
    """The script that locks the policy stores the lock for azd and scripts, and prints the command for the workflow."""
    (fake_tools / "az.state").write_text("Unlocked", encoding="utf-8")
    (fake_tools / "azd.account").write_text("stdataprod", encoding="utf-8")
    file = fake_tools / "prod.env"
    arguments = ("rg-oi-prod", "stdataprod", str(file))
    code, printed = run_script(fake_tools, "lock-checkpoints", *arguments, typed="stdataprod\n")
    assert code == 0, printed
    assert "gh variable set CHECKPOINTS_LOCKED" in printed
    assert file.read_text(encoding="utf-8") == "export CHECKPOINTS_LOCKED=true\n"
    assert "azd env set CHECKPOINTS_LOCKED true" in (fake_tools / "azd.calls").read_text(encoding="utf-8")
    # Once more, for a file that was lost: the policy is locked already, and the line is not written twice.
    assert run_script(fake_tools, "lock-checkpoints", *arguments)[0] == 0
    assert file.read_text(encoding="utf-8").count("CHECKPOINTS_LOCKED") == 1


def test_lock_does_not_change_other_environments_of_azd(fake_tools: Path) -> None:
    """If another azd environment is selected, a lock does not change that environment's variables."""
    (fake_tools / "az.state").write_text("Unlocked", encoding="utf-8")
    (fake_tools / "azd.account").write_text("stdataprod2", encoding="utf-8")
    code, printed = run_script(fake_tools, "lock-checkpoints", "rg-oi-prod", "stdataprod", typed="stdataprod\n")
    assert code == 0, printed
    assert (fake_tools / "azd.calls").read_text(encoding="utf-8") == "azd env get-values\n"


def test_locking_requires_that_the_operator_types_the_storage_account(fake_tools: Path) -> None:
    """Unless the operator types the name of the storage account, the script changes nothing."""
    (fake_tools / "az.state").write_text("Unlocked", encoding="utf-8")
    code, printed = run_script(fake_tools, "lock-checkpoints", "rg-oi-prod", "stdataprod", typed="yes\n")
    assert (code, "nothing was changed" in printed) == (1, True)
    assert not (fake_tools / "azd.calls").exists()


@pytest.mark.parametrize(
    ("state", "expected", "code"),
    [
        ("Locked", "true", 0),
        ("Unlocked", "false", 0),
        ("Unlocked", "", 0),
        ("None", "", 0),
        ("Locked", "", 1),
        ("Locked", "false", 1),
        ("Unlocked", "true", 1),
        ("None", "true", 1),
    ],
)
def test_differing_lock_states_stop_a_deployment(fake_tools: Path, state: str, expected: str, code: int) -> None:
    """A deployment stops if CHECKPOINTS_LOCKED and Azure do not agree on whether the policy is locked."""
    (fake_tools / "az.state").write_text(state, encoding="utf-8")
    found, printed = run_script(fake_tools, "checkpoints-locked", "rg-oi-prod", CHECKPOINTS_LOCKED=expected)
    assert found == code, printed
    remedy = "export CHECKPOINTS_LOCKED=true" if state == "Locked" else "unset CHECKPOINTS_LOCKED"
    assert (remedy in printed) == (code == 1)


def test_an_unknown_lock_state_stops_a_deployment(fake_tools: Path) -> None:
    """A deployment stops if the Azure CLI fails or returns an unknown state of the policy."""
    (fake_tools / "az").write_text("#!/usr/bin/env bash\nexit 1\n", encoding="utf-8")
    assert run_script(fake_tools, "checkpoints-locked", "rg-oi-prod")[0] != 0


@pytest.mark.parametrize(
    ("group_exists", "namespaces", "units"),
    [
        ("false", "", "0"),
        ("true", "", "0"),
        ("true", "West Europe\\t12\\n", "12"),
        ("true", "northeurope\\t7\\nwesteurope\\t12\\n", "12"),
        ("true", "northeurope\\t7\\n", "0"),
    ],
)
def test_units_in_use_are_those_of_the_region(fake_tools: Path, group_exists: str, namespaces: str, units: str) -> None:
    """The script prints the units of the region's namespace, and 0 if the region has none."""
    text = f"#!/usr/bin/env bash\ncase $1 in group) echo {group_exists} ;; *) printf '{namespaces}' ;; esac\n"
    (fake_tools / "az").write_text(text, encoding="utf-8")
    assert run_script(fake_tools, "throughput-units", "rg-oi-prod", "westeurope") == (0, f"{units}\n")


def test_unknown_units_stop_a_deployment(fake_tools: Path) -> None:
    """If Azure does not return the units in use, the script fails, so that the deployment does not lower them."""
    text = "#!/usr/bin/env bash\n[ $1 = group ] && echo true\n"
    (fake_tools / "az").write_text(text, encoding="utf-8")
    assert run_script(fake_tools, "throughput-units", "rg-oi-prod", "westeurope")[0] != 0


def test_a_deployment_without_live_stream_configures_no_hub(fake_tools: Path) -> None:
    """If the deployment names no Web PubSub service, it has no live stream, and the script calls nothing."""
    given = {"AZURE_RESOURCE_GROUP": "rg-oi-prod", "APP_URL": "http://127.0.0.1:9", "WEB_PUBSUB_AUDIENCE": "id"}
    (fake_tools / "az.state").touch()
    code, printed = run_script(fake_tools, "live-stream-hub", WEB_PUBSUB_NAME="", **given)
    assert (code, "no live stream" in printed) == (0, True), printed


ENTRA_ID = """#!/usr/bin/env bash
echo "$*" >>"$0.calls"
case "$*" in
  "account show"*) echo 0000-subscription ;;
  "ad app list"*) if [ -n "${EXISTING:-}" ]; then echo "$EXISTING"; fi ;;
  "ad app create"*) echo new-id ;;
  "ad app show --id unknown"*) echo "no such application" >&2; exit 3 ;;
  "ad app show"*"--query id"*) echo object ;;
esac
"""


def run_register_audience(fake_tools: Path, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
    """Run ``register-audience`` with a fake Entra ID; return its exit code, its output and the calls of az."""
    (fake_tools / "az").write_text(ENTRA_ID, encoding="utf-8")
    code, printed = run_script(fake_tools, "register-audience", *arguments, **environment)
    return code, printed, (fake_tools / "az.calls").read_text(encoding="utf-8").splitlines()


def test_the_name_of_an_audience_contains_the_subscription(fake_tools: Path) -> None:
    """The name of an application contains the subscription, because a tenant can have several environments "prod"."""
    code, printed, calls = run_register_audience(fake_tools, "oi-prod-sign-in")
    assert (code, printed) == (0, "new-id\n")
    name = "oi-prod-sign-in-0000-subscription"
    # Entra ID searches for the beginning of a name with the option --display-name.
    assert f"ad app list --filter displayName eq '{name}' --query [].appId --output tsv" in calls
    assert any(call.startswith(f"ad app create --display-name {name} ") for call in calls)


def test_an_existing_application_is_not_taken_by_its_name(fake_tools: Path) -> None:
    """If an application of the name exists, the script prints its client id, stops and changes nothing."""
    code, printed, calls = run_register_audience(fake_tools, "oi-prod-sign-in", EXISTING="foreign")
    assert (code, "oi-prod-sign-in-0000-subscription" in printed, "foreign" in printed) == (1, True, True)
    assert [call.split(" --")[0] for call in calls] == ["account show", "ad app list"]


def test_an_existing_application_is_taken_by_its_client_id(fake_tools: Path) -> None:
    """With the client id of an application, the script configures this application and registers none."""
    code, printed, calls = run_register_audience(fake_tools, "oi-prod-sign-in", "mine", EXISTING="foreign")
    assert (code, printed) == (0, "mine\n")
    assert not any(call.startswith(("ad app create", "ad app list")) for call in calls)
    assert any(call.startswith("rest ") and "api://mine" in call for call in calls)


def test_an_unknown_client_id_is_rejected(fake_tools: Path) -> None:
    """A client id that is not registered in this tenant is rejected: it could belong to another tenant."""
    code, _, calls = run_register_audience(fake_tools, "oi-prod-sign-in", "unknown")
    assert code != 0
    assert not any(call.startswith("ad sp create") for call in calls)


@pytest.fixture
def scripts_copy(tmp_path: Path) -> Path:
    """Return a copy of templates and scripts, because the CLI writes files next to the parameter files."""
    root = tmp_path / "checkout"
    shutil.copytree(BICEP, root / "infra" / "bicep")
    shutil.copytree(SCRIPTS, root / "scripts" / "azure")
    return root


@pytest.mark.parametrize(
    "warning_command", ["", "build main.bicep", "lint live-stream.bicep", "build-params dev.bicepparam"]
)
def test_a_warning_fails_the_compilation(fake_tools: Path, scripts_copy: Path, warning_command: str) -> None:
    """The script exits with 1 if the compiler prints a warning."""
    (fake_tools / "bicep.warns").write_text(warning_command, encoding="utf-8")
    script = scripts_copy / "scripts" / "azure" / "compile-templates"
    code, printed = run_script(fake_tools, str(script), str(scripts_copy / "predicted"))
    assert (code, "BCP318" in printed) == (int(bool(warning_command)), bool(warning_command)), printed


def test_the_resources_of_every_situation_are_predicted(fake_tools: Path, scripts_copy: Path) -> None:
    """The script writes the predicted resources for each size and each situation."""
    (fake_tools / "bicep.warns").touch()
    run_script(
        fake_tools, str(scripts_copy / "scripts" / "azure" / "compile-templates"), str(scripts_copy / "predicted")
    )
    names = {path.stem for path in (scripts_copy / "predicted").glob("*.json")}
    sizes = {"dev", "test", "azd", "prod"}
    assert names == sizes | {"locked", "failed-over", "restored", "other-home", "long-name"}
    calls = (fake_tools / "bicep.calls").read_text(encoding="utf-8")
    assert calls.count(" northeurope\n") == 1
    assert calls.count("northeurope \n") == 1
    assert [path.name for path in (scripts_copy / "infra" / "bicep").glob("*.snapshot.json")] == []


def test_the_script_fails_if_a_forbidden_name_compiles(fake_tools: Path, scripts_copy: Path) -> None:
    """The script fails if the compiler accepts a forbidden environment name."""
    (fake_tools / "bicep.warns").touch()
    (fake_tools / "bicep").write_text(BICEP_CLI.replace("Plant_1", "-"), encoding="utf-8")
    code, printed = run_script(
        fake_tools, str(scripts_copy / "scripts" / "azure" / "compile-templates"), str(scripts_copy / "predicted")
    )
    assert (code, "Plant_1 is not rejected" in printed) == (1, True)
