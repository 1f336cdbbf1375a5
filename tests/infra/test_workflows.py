"""What GitHub and azd run deploys the package, with no more rights than each step needs."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.service.running import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DEPLOY: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/deploy.yml").read_text(encoding="utf-8"))
SCRIPTS = [path for path in (ROOT / "scripts").rglob("*") if path.is_file() and path.read_bytes().startswith(b"#!")]


def steps(job: str) -> dict[str, dict[str, Any]]:
    """Return the steps of a job of the deployment by their name, action or command, in order."""
    return {
        step.get("name") or step.get("uses", "").partition("@")[0] or step["run"]: step
        for step in DEPLOY["jobs"][job]["steps"]
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path: Path) -> None:
    """Each action is pinned to a commit, with its version beside it."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


def test_the_package_is_deployed_as_it_was_built() -> None:
    """The workflow deploys dist/app.zip; Azure builds nothing, and the checkout stays whole for the later steps."""
    deploy = steps("deploy")
    app = deploy["App"]
    assert app["uses"] == "azure/functions-action@c5060b3b8bb1ebbcb531abd00c822ecbaa8ea656"
    assert app["with"] == {"app-name": "${{ env.APP_NAME }}", "package": "dist/app.zip", "remote-build": False}
    order = list(deploy)
    assert order.index("make package") < order.index("azure/login"), "no dependency runs beside the sign-in's tokens"
    assert deploy["actions/setup-python"]["with"]["python-version"] == "3.13"


def test_azd_deploys_the_content_of_the_package() -> None:
    """A hook of azd builds the package before azd packages, and azd deploys its content without a remote build."""
    document = yaml.safe_load((ROOT / "azure.yaml").read_text(encoding="utf-8"))
    service = document["services"]["api"]
    assert (service["dist"], service["remoteBuild"]) == ("dist/app", False)
    assert service["hooks"]["prepackage"]["run"] == "make package"
    assert set(document["hooks"]) == {"postdeploy"}


@pytest.mark.parametrize("job", ["what-if", "deploy"])
def test_a_deployment_is_named_after_its_region(job: str) -> None:
    """A deployment of a subscription has one region for ever, so its name holds the one that is given."""
    [command] = [step["run"] for step in steps(job).values() if "az deployment sub" in step.get("run", "")]
    assert '--name "workspace-${{ inputs.environment }}-$AZURE_LOCATION" --location "$AZURE_LOCATION"' in command


@pytest.mark.parametrize("job", ["what-if", "deploy"])
def test_the_network_closes_unless_the_caller_leaves_it_open(job: str) -> None:
    """The input adds a parameter, and is off by default."""
    assert DEPLOY[True]["workflow_dispatch"]["inputs"]["open-network"]["default"] is False
    [command] = [step["run"] for step in steps(job).values() if "az deployment sub" in step.get("run", "")]
    line = command.splitlines()[0]
    for chosen, expected in (("true", "--parameters privateNetworking=false"), ("false", "")):
        script = f'{line}\necho "${{network[@]}}"'
        done = subprocess.run(
            ["bash", "-euc", script],
            env=os.environ | {"OPEN_NETWORK": chosen},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected


def test_the_preview_signs_in_as_itself() -> None:
    """The job without reviewers has an environment of its own and asks without write rights."""
    job = DEPLOY["jobs"]["what-if"]
    assert job["environment"] == "${{ inputs.environment }}-preview"
    assert "--validation-level ProviderNoRbac" in steps("what-if")["What would change"]["run"]
    assert DEPLOY["jobs"]["deploy"]["environment"] == "${{ inputs.environment }}"
    assert DEPLOY["permissions"] == {"contents": "read"}


def _tour(tmp_path: Path, output: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the step of the tour with a script in place of the tour that prints its arguments and an output."""
    (tmp_path / "scripts").mkdir(exist_ok=True)
    script = tmp_path / "scripts" / "smoke.sh"
    script.write_text(f'#!/bin/sh\necho "$@"\necho "{output}"\n')
    script.chmod(0o755)
    given = {"APP_URL": "https://app", "RUNNER_TEMP": str(tmp_path), **environment}
    command = ["bash", "-eo", "pipefail", "-c", steps("deploy")["Tour"]["run"]]
    return subprocess.run(command, cwd=tmp_path, env=os.environ | given, capture_output=True, text=True, check=False)


def test_the_tour_proves_that_a_message_becomes_a_row(tmp_path: Path) -> None:
    """The step passes when telemetry was found, and fails where that check was left out."""
    found = _tour(tmp_path, "ok   telemetry      line-1", SMOKE_KEYS='{"a": "b"}', CLOSED_NETWORK="false")
    assert (found.returncode, found.stdout.splitlines()[0]) == (0, f"https://app {tmp_path}/keys.json")
    assert json.loads((tmp_path / "keys.json").read_text()) == {"a": "b"}
    assert (tmp_path / "keys.json").stat().st_mode & 0o077 == 0
    missing = _tour(tmp_path, "--   telemetry      no connection", SMOKE_KEYS="{}", CLOSED_NETWORK="false")
    assert missing.returncode == 1


def test_a_closed_network_skips_the_download(tmp_path: Path) -> None:
    """From outside a closed network the tour leaves the download out; without keys it is not taken, and says so."""
    closed = _tour(tmp_path, "ok   telemetry      line-1", SMOKE_KEYS="{}", CLOSED_NETWORK="true")
    assert closed.stdout.startswith("--without download https://app")
    without = _tour(tmp_path, "", SMOKE_KEYS="", CLOSED_NETWORK="true")
    assert (without.returncode, "::warning::No tour was taken" in without.stdout) == (0, True)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse(path: Path) -> None:
    """Every shell script is executable and has no syntax error."""
    assert path.stat().st_mode & 0o100
    subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Run the script that registers the deployers with a stand-in for az, and return the calls."""
    stand_in = tmp_path / "az"
    stand_in.write_text(
        "#!/usr/bin/env bash\n"
        'printf "%s\\0" "$@" >> "$AZ_LOG"; printf "\\n\\0" >> "$AZ_LOG"\n'
        'case "$*" in\n'
        '  "account show"*) echo 0000-subscription ;;\n'
        '  "ad app create"*) echo "id-of-$5" ;;\n'
        '  "ad sp show"*"--query id"*) echo "object-of-$5" ;;\n'
        "esac\n"
    )
    stand_in.chmod(0o755)
    log = tmp_path / "calls"
    path = f"{tmp_path}:{os.environ['PATH']}"
    command = [str(ROOT / "scripts/azure/github-deployers"), "prod", "plant/workspace"]
    done = subprocess.run(
        command, env=os.environ | {"PATH": path, "AZ_LOG": str(log)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "AZURE_CLIENT_ID of the environment prod: id-of-oi-deploy-prod",
        "AZURE_CLIENT_ID of the environment prod-preview: id-of-oi-preview-prod",
    ]
    return [call.split("\0")[:-1] for call in log.read_text().split("\n\0") if call]


def _option(call: list[str], name: str) -> str:
    return call[call.index(name) + 1] if name in call else ""


def test_each_application_gets_the_least_rights(calls: list[list[str]]) -> None:
    """The preview may read and ask what would change; only the deployer writes, and assigns roles under a condition."""
    granted = {
        (_option(call, "--assignee-object-id"), _option(call, "--role"), bool(_option(call, "--condition")))
        for call in calls
        if call[:3] == ["role", "assignment", "create"]
    }
    assert granted == {
        ("object-of-id-of-oi-deploy-prod", "Contributor", False),
        ("object-of-id-of-oi-deploy-prod", "User Access Administrator", True),
        ("object-of-id-of-oi-preview-prod", "Reader", False),
        ("object-of-id-of-oi-preview-prod", "Deployment what-if 0000-subscription", False),
    }
    [definition] = [
        _option(call, "--role-definition") for call in calls if call[:3] == ["role", "definition", "create"]
    ]
    assert json.loads(definition)["Actions"] == ["Microsoft.Resources/deployments/whatIf/action"]
    assert json.loads(definition)["AssignableScopes"] == ["/subscriptions/0000-subscription"]


def test_the_condition_names_the_roles_of_the_templates(calls: list[list[str]]) -> None:
    """Roles other than those of roles.json can neither be assigned nor taken away."""
    [condition] = filter(None, (_option(call, "--condition") for call in calls))
    roles = set(json.loads((ROOT / "infra/bicep/roles.json").read_text(encoding="utf-8")).values())
    lists = [set(each.split(", ")) for each in re.findall(r"GuidEquals \{(.*?)\}", condition)]
    assert lists == [roles, roles]
    for source, action in (("Request", "write"), ("Resource", "delete")):
        guard = f"!(ActionMatches{{'Microsoft.Authorization/roleAssignments/{action}'}})"
        attribute = f"@{source}[Microsoft.Authorization/roleAssignments:RoleDefinitionId]"
        assert f"(({guard}) OR ({attribute} ForAnyOfAnyValues:GuidEquals" in condition
    assert condition.count("(") == condition.count(")")


def test_each_environment_signs_in_as_its_own_application(calls: list[list[str]]) -> None:
    """A job of the preview cannot sign in as the deployer."""
    federated = {
        (_option(call, "--id"), json.loads(_option(call, "--parameters"))["subject"])
        for call in calls
        if call[:4] == ["ad", "app", "federated-credential", "create"]
    }
    assert federated == {
        ("id-of-oi-deploy-prod", "repo:plant/workspace:environment:prod"),
        ("id-of-oi-preview-prod", "repo:plant/workspace:environment:prod-preview"),
    }


def test_the_host_reads_ahead_a_whole_batch() -> None:
    """The host requests at least as many events ahead as a batch holds, and looks for work every ten seconds."""
    extensions = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]
    assert extensions["eventHubs"]["prefetchCount"] >= extensions["eventHubs"]["maxEventBatchSize"]
    assert extensions["durableTask"]["storageProvider"]["maxQueuePollingInterval"] <= "00:00:10"
