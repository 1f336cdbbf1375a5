"""Tests that the GitHub and azd workflows deploy the package with only the rights that each step needs."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.service.local_service import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DEPLOY: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/deploy.yml").read_text(encoding="utf-8"))
SCRIPTS = [path for path in (ROOT / "scripts").rglob("*") if path.is_file() and path.read_bytes().startswith(b"#!")]


def read_steps(job: str) -> dict[str, dict[str, Any]]:
    """Return the steps of a deployment job in order, by name, action or command."""
    return {
        step.get("name") or step.get("uses", "").partition("@")[0] or step["run"]: step
        for step in DEPLOY["jobs"][job]["steps"]
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_actions_are_pinned(path: Path) -> None:
    """Each action is pinned to a commit, with its version in a comment."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


def test_the_package_is_deployed_as_it_was_built() -> None:
    """The workflow deploys dist/app.zip without a build on Azure and leaves the checkout unchanged for later steps."""
    deploy = read_steps("deploy")
    app = deploy["App"]
    assert app["uses"] == "azure/functions-action@c5060b3b8bb1ebbcb531abd00c822ecbaa8ea656"
    assert app["with"] == {"app-name": "${{ env.APP_NAME }}", "package": "dist/app.zip", "remote-build": False}
    assert read_steps("build")["actions/setup-python"]["with"]["python-version"] == "3.13"


def test_jobs_that_can_request_azure_tokens_run_no_dependencies() -> None:
    """The job that builds cannot request Azure tokens; jobs that sign in to Azure call neither make nor npm."""
    build = DEPLOY["jobs"]["build"]
    assert (build["permissions"], "environment" in build) == ({"contents": "read"}, False)
    for name, job in DEPLOY["jobs"].items():
        commands = "\n".join(step.get("run", "") for step in job["steps"])
        builds = re.search(r"\b(?:make|npm|npx|pip)\b", commands) is not None
        assert builds == (name == "build"), name
        assert ("id-token" in job["permissions"]) == (name != "build"), name


def test_the_package_passes_between_the_jobs_unchanged(tmp_path: Path) -> None:
    """The deployment job uses the package of the build job, and stops if the package's digest differs."""
    assert DEPLOY["jobs"]["deploy"]["needs"] == ["what-if", "build"]
    assert DEPLOY["jobs"]["build"]["outputs"] == {"sha256": "${{ steps.digest.outputs.sha256 }}"}
    upload, download = read_steps("build")["actions/upload-artifact"], read_steps("deploy")["actions/download-artifact"]
    assert (upload["with"]["name"], upload["with"]["path"]) == ("package", "dist/app.zip")
    assert download["with"] == {"name": "package", "path": "dist"}
    order = list(read_steps("deploy"))
    assert order.index("actions/download-artifact") < order.index("Package") < order.index("azure/login")
    check = read_steps("deploy")["Package"]
    assert check["env"] == {"SHA256": "${{ needs.build.outputs.sha256 }}"}
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "app.zip").write_text("built")
    assert read_steps("build")["Digest"]["id"] == "digest"
    _run_bash(read_steps("build")["Digest"]["run"], tmp_path, GITHUB_OUTPUT=str(tmp_path / "output"))
    digest = (tmp_path / "output").read_text().strip().removeprefix("sha256=")
    assert _run_bash(check["run"], tmp_path, SHA256=digest) == 0
    assert _run_bash(check["run"], tmp_path, SHA256="") != 0
    (tmp_path / "dist" / "app.zip").write_text("another")
    assert _run_bash(check["run"], tmp_path, SHA256=digest) != 0


def _run_bash(script: str, folder: Path, **environment: str) -> int:
    command = ["bash", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, check=False)
    return done.returncode


def test_azd_deploys_the_content_of_the_package() -> None:
    """A hook of azd builds the package; azd deploys its content without a remote build."""
    document = yaml.safe_load((ROOT / "azure.yaml").read_text(encoding="utf-8"))
    service = document["services"]["api"]
    assert (service["dist"], service["remoteBuild"]) == ("dist/app", False)
    assert service["hooks"]["prepackage"]["run"] == "make package"
    assert set(document["hooks"]) == {"postdeploy"}


JOBS = {"what-if": "What would change", "deploy": "Resources"}
"""The step of each job that runs the templates."""
VARIABLES = {
    "AZURE_LOCATION": "westeurope",
    "AZURE_PRINCIPAL_ID": "person",
    "WEB_PUBSUB_AUDIENCE": "audience",
    "ALERT_EMAILS": "operators@plant.example",
}
AZ = """#!/usr/bin/env bash
printf '%s\\0' "$@" >>"$0.calls"; printf '\\n\\0' >>"$0.calls"
echo "${THROUGHPUT_UNITS:-}" >"$0.units"
case "$*" in
  "group exists"*) echo true ;;
  "storage account list"*) echo stdataprod ;;
  "eventhubs namespace list"*) printf 'North Europe\\t7\\nwesteurope\\t12\\n' ;;
  "storage container-rm exists"*) echo true ;;
  "storage container immutability-policy show"*) echo "${POLICY:-Unlocked}" ;;
  "deployment sub create"*)
    count=$(cat "$0.count" 2>/dev/null || echo 0); echo $((count + 1)) >"$0.count"
    if [ "$count" -lt "${REJECTED:-0}" ]; then echo "ERROR: ${ERROR:-ForbiddenByRbac}" >&2; exit 1; fi
    echo '{"outputs": {"apP_NAME": {"value": "app"}}, "parameters": {"privateNetworking": {"value": true}}}' ;;
esac
"""


def _run_step(folder: Path, job: str, environment: str = "prod", **variables: str) -> tuple[int, str, list[list[str]]]:
    """Run the deployment step of a job with fakes; return the exit code, the output, and the calls of az."""
    for name, text in (("az", AZ), ("sleep", '#!/bin/sh\necho "sleep $1" >&2\n')):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    script = read_steps(job)[JOBS[job]]["run"].replace("${{ inputs.environment }}", environment)
    given = VARIABLES | {"RUNNER_TEMP": str(folder), "GITHUB_ENV": str(folder / "env"), "OPEN_NETWORK": "false"}
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=ROOT,
        env={**os.environ, **given, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    log = folder / "az.calls"
    calls = log.read_text(encoding="utf-8").split("\n\0") if log.exists() else []
    return done.returncode, done.stderr, [call.split("\0")[:-1] for call in calls if call]


def _read_deployments(az_calls: list[list[str]]) -> list[list[str]]:
    return [call for call in az_calls if call[:2] == ["deployment", "sub"]]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("home", "active", "region"),
    [
        ("westeurope", "", "westeurope"),
        ("westeurope", "northeurope", "northeurope"),
        ("West Europe", "", "westeurope"),
        ("", "North Europe", "northeurope"),
    ],
)
def test_a_deployment_is_named_after_its_region(tmp_path: Path, job: str, home: str, active: str, region: str) -> None:
    """A deployment's name contains the app's region, because a deployment of this name cannot change region."""
    code, messages, calls = _run_step(tmp_path, job, AZURE_LOCATION=home, AZURE_ACTIVE_LOCATION=active)
    assert code == 0, messages
    [call] = _read_deployments(calls)
    assert (_read_option(call, "--name"), _read_option(call, "--location")) == (f"workspace-prod-{region}", region)


@pytest.mark.parametrize("job", JOBS)
def test_workflows_close_the_network_by_default(tmp_path: Path, job: str) -> None:
    """The network is closed by default; an input of the workflow opens it."""
    assert DEPLOY[True]["workflow_dispatch"]["inputs"]["open-network"]["default"] is False
    for chosen in ("true", "false"):
        folder = tmp_path / chosen
        folder.mkdir()
        [call] = _read_deployments(_run_step(folder, job, OPEN_NETWORK=chosen)[2])
        assert ("privateNetworking=false" in call) == (chosen == "true")
        assert "infra/bicep/prod.bicepparam" in call


def test_preview_and_deployment_pass_every_variable_of_the_templates() -> None:
    """Preview and deployment pass each variable that a parameter file reads, so that they agree."""
    files = [ROOT / "infra/bicep" / f"{size}.bicepparam" for size in ("dev", "test", "prod")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    read = set(re.findall(r"readEnvironmentVariable\('(\w+)'", text))
    preview, deploy = (read_steps(job)[name]["env"] for job, name in JOBS.items())
    assert preview == deploy
    # scripts/azure/deploy-templates reads the units from Azure.
    assert set(preview) == read - {"THROUGHPUT_UNITS"}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("active", "units"), [("", "12"), ("West Europe", "12"), ("northeurope", "7"), ("swedencentral", "0")]
)
def test_a_deployment_gets_the_throughput_units_in_use(tmp_path: Path, job: str, active: str, units: str) -> None:
    """The templates get the units of the namespace in the active region, because a deployment must not lower them."""
    code, messages, _ = _run_step(tmp_path, job, AZURE_ACTIVE_LOCATION=active)
    assert code == 0, messages
    assert (tmp_path / "az.units").read_text(encoding="utf-8") == f"{units}\n"


def test_every_variable_of_github_is_documented() -> None:
    """docs/how-to/deploy-from-github.md names each variable and secret that the workflow reads."""
    text = (ROOT / ".github/workflows/deploy.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs/how-to/deploy-from-github.md").read_text(encoding="utf-8")
    names = set(re.findall(r"(?:vars|secrets)\.(\w+)", text))
    assert len(names) > 10
    assert {name for name in names if not re.search(rf"\b{name}\b", page)} == set()


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("environment", "empty", "code"),
    [
        ("dev", "AZURE_PRINCIPAL_ID", 1),
        ("dev", "WEB_PUBSUB_AUDIENCE", 1),
        ("dev", "ALERT_EMAILS", 0),
        ("test", "ALERT_EMAILS", 0),
        ("prod", "AZURE_PRINCIPAL_ID", 1),
        ("prod", "WEB_PUBSUB_AUDIENCE", 1),
        ("prod", "ALERT_EMAILS", 1),
    ],
)
def test_an_empty_variable_stops_before_azure_is_called(
    tmp_path: Path, job: str, environment: str, empty: str, code: int
) -> None:
    """If GitHub passes an empty text for an unset variable, the job stops before it calls Azure."""
    found, messages, calls = _run_step(tmp_path, job, environment, **{empty: ""})
    assert (found, f"{empty} is empty" in messages) == (code, bool(code)), messages
    assert bool(calls) != bool(code)


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("policy", "variable", "code"),
    [("Locked", "true", 0), ("Unlocked", "", 0), ("Locked", "", 1), ("Locked", "false", 1), ("Unlocked", "true", 1)],
)
def test_a_wrong_checkpoint_lock_variable_stops_both_jobs(
    tmp_path: Path, job: str, policy: str, variable: str, code: int
) -> None:
    """If CHECKPOINTS_LOCKED does not agree with the policy in Azure, neither job previews or deploys anything."""
    found, messages, calls = _run_step(tmp_path, job, POLICY=policy, CHECKPOINTS_LOCKED=variable)
    assert found == code, messages
    assert len(_read_deployments(calls)) == 1 - code
    # The preview's application has the role Reader, which allows every action that ends with read.
    before = [call for call in calls if call[0] != "deployment"]
    names = {" ".join(call[: next(i for i, word in enumerate(call) if word.startswith("-"))]) for call in before}
    assert names == {
        "group exists",
        "storage account list",
        "storage container-rm exists",
        "storage container immutability-policy show",
        *(["eventhubs namespace list"] if code == 0 else []),
    }


@pytest.mark.parametrize(
    ("rejected", "error", "code", "attempts"),
    [
        (0, "", 0, 1),
        (1, "ForbiddenByRbac", 0, 2),
        (2, "ForbiddenByRbac", 0, 3),
        (9, "ForbiddenByRbac", 1, 3),
        (9, "AuthorizationFailed", 1, 1),
    ],
)
def test_only_a_role_that_is_not_effective_yet_is_retried(
    tmp_path: Path, rejected: int, error: str, code: int, attempts: int
) -> None:
    """A job is repeated only while the deployer's new role on the vault is not effective; other errors end it."""
    found, messages, calls = _run_step(tmp_path, "deploy", REJECTED=str(rejected), ERROR=error)
    assert found == code, messages
    assert len(_read_deployments(calls)) == attempts
    assert messages.count("sleep 120") == attempts - 1
    if not code:
        written = (tmp_path / "env").read_text(encoding="utf-8").splitlines()
        assert written == ["APP_NAME=app", "CLOSED_NETWORK=true"]


def test_unknown_actions_and_environments_are_rejected() -> None:
    """An unknown or misspelt action or environment deploys nothing."""
    script = ROOT / "scripts/azure/deploy-templates"
    for arguments in (("destroy", "prod"), ("create", "production"), ("create", "../prod")):
        done = subprocess.run([script, *arguments], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.startswith("usage: ")) == (2, True)


def test_the_preview_job_has_a_separate_identity() -> None:
    """The preview job, which needs no reviewer, uses a separate GitHub environment without write rights."""
    job = DEPLOY["jobs"]["what-if"]
    assert job["environment"] == "${{ inputs.environment }}-preview"
    assert "--validation-level ProviderNoRbac" in read_steps("what-if")["What would change"]["run"]
    assert DEPLOY["jobs"]["deploy"]["environment"] == "${{ inputs.environment }}"
    assert DEPLOY["permissions"] == {"contents": "read"}


def test_workflows_attach_the_predicted_resources_for_the_reviewer() -> None:
    """Both workflows compile with the pinned compiler, fail on warnings, and attach the predicted resources."""
    check = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8"))
    for found in (check["jobs"]["templates"]["steps"], DEPLOY["jobs"]["what-if"]["steps"]):
        [number] = [number for number, step in enumerate(found) if "compile-templates" in step.get("run", "")]
        assert 'scripts/azure/download-bicep "$RUNNER_TEMP/bin"' in found[number]["run"]
        assert 'BICEP="$RUNNER_TEMP/bin/bicep" scripts/azure/compile-templates predicted' in found[number]["run"]
        assert "az bicep" not in found[number]["run"]
        upload = found[number + 1]
        assert upload["if"] == "always()"
        assert upload["uses"] == "actions/upload-artifact@330a01c490aca151604b8cf639adc76d48f6c5d4"
        assert upload["with"]["path"] == "predicted"
    order = list(read_steps("what-if"))
    assert order.index("actions/upload-artifact") < order.index("azure/login") < order.index("What would change")
    # Azure CLI compiles with the program on the path when it runs on GitHub.
    for job, name in (("what-if", "Predicted resources"), ("deploy", "Bicep")):
        assert 'echo "$RUNNER_TEMP/bin" >> "$GITHUB_PATH"' in read_steps(job)[name]["run"]


def test_the_bicep_compiler_is_pinned(tmp_path: Path) -> None:
    """The compiler comes from one release of Azure/bicep and is executable."""
    curl = tmp_path / "curl"
    curl.write_text('#!/usr/bin/env bash\necho "$@"\ntouch "$2"\n', encoding="utf-8")
    curl.chmod(0o755)
    command = [ROOT / "scripts/azure/download-bicep", tmp_path / "bin"]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert re.search(r"https://github\.com/Azure/bicep/releases/download/v\d+\.\d+\.\d+/bicep-linux-x64$", printed)
    assert (tmp_path / "bin" / "bicep").stat().st_mode & 0o100


def _run_smoke_test_step(tmp_path: Path, output: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the smoke-test step with a script that prints its arguments and the given output."""
    (tmp_path / "scripts").mkdir(exist_ok=True)
    script = tmp_path / "scripts" / "smoke.sh"
    script.write_text(f'#!/bin/sh\necho "$@"\necho "{output}"\n')
    script.chmod(0o755)
    given = {"APP_URL": "https://app", "RUNNER_TEMP": str(tmp_path), **environment}
    command = ["bash", "-eo", "pipefail", "-c", read_steps("deploy")["Tour"]["run"]]
    return subprocess.run(command, cwd=tmp_path, env=os.environ | given, capture_output=True, text=True, check=False)


def test_the_smoke_test_step_requires_the_check_of_telemetry_rows(tmp_path: Path) -> None:
    """The step fails if the smoke test skipped the check that telemetry arrives in the table."""
    found = _run_smoke_test_step(
        tmp_path, "ok   telemetry      line-1", SMOKE_KEYS='{"a": "b"}', CLOSED_NETWORK="false"
    )
    assert (found.returncode, found.stdout.splitlines()[0]) == (0, f"https://app {tmp_path}/keys.json")
    assert json.loads((tmp_path / "keys.json").read_text()) == {"a": "b"}
    assert (tmp_path / "keys.json").stat().st_mode & 0o077 == 0
    missing = _run_smoke_test_step(
        tmp_path, "--   telemetry      no connection", SMOKE_KEYS="{}", CLOSED_NETWORK="false"
    )
    assert missing.returncode == 1


def test_a_closed_network_skips_the_download(tmp_path: Path) -> None:
    """A closed network omits the download, a variable selects the connection; without keys there is only a warning."""
    closed = _run_smoke_test_step(tmp_path, "ok   telemetry      line-1", SMOKE_KEYS="{}", CLOSED_NETWORK="true")
    assert closed.stdout.startswith("--without download https://app")
    chosen = _run_smoke_test_step(
        tmp_path, "ok   telemetry      line-1", SMOKE_KEYS="{}", CLOSED_NETWORK="false", SMOKE_CONNECTION="line-1"
    )
    assert chosen.stdout.startswith("--connection line-1 https://app")
    without = _run_smoke_test_step(tmp_path, "", SMOKE_KEYS="", CLOSED_NETWORK="true")
    assert (without.returncode, "::warning::The tour did not run" in without.stdout) == (0, True)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_shell_scripts_have_valid_syntax(path: Path) -> None:
    """Each shell script is executable and has valid syntax."""
    assert path.stat().st_mode & 0o100
    subprocess.run(["bash", "-n", str(path)], check=True)


ISSUER = "https://token.actions.githubusercontent.com"
ENTRA_ID = """#!/usr/bin/env bash
printf "%s\\0" "$@" >> "$0.calls"; printf "\\n\\0" >> "$0.calls"
case "$*" in
  "account show"*) echo 0000-subscription ;;
  "ad app list"*) if [ -n "${EXISTING:-}" ]; then echo "$EXISTING"; fi ;;
  "ad app create"*) echo "id-of-$5" ;;
  "ad app federated-credential list --id foreign"*) printf "$FEDERATED" ;;
  "ad app show --id foreign --query [passwordCredentials,keyCredentials]"*) echo "${APP_SECRET:-}" ;;
  "ad sp show --id foreign --query [passwordCredentials,keyCredentials]"*) echo "${SERVICE_SECRET:-}" ;;
  "ad sp show"*"--query id"*) echo "object-of-$5" ;;
esac
"""


def _run_github_deployers(folder: Path, *client_ids: str, **environment: str) -> tuple[int, str, list[list[str]]]:
    """Run ``github-deployers`` with a fake ``az``; return the exit code, the output and the arguments of each call."""
    az = folder / "az"
    az.write_text(ENTRA_ID, encoding="utf-8")
    az.chmod(0o755)
    command = [str(ROOT / "scripts/azure/github-deployers"), "prod", "plant/workspace", *client_ids]
    given = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"} | environment
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    calls = (folder / "az.calls").read_text(encoding="utf-8").split("\n\0")
    return done.returncode, done.stdout + done.stderr, [call.split("\0")[:-1] for call in calls if call]


@pytest.fixture
def az_calls(tmp_path: Path) -> list[list[str]]:
    """Run ``github-deployers`` in a tenant without such applications; return the arguments of each call of ``az``."""
    code, printed, calls = _run_github_deployers(tmp_path)
    assert (code, printed.splitlines()) == (
        0,
        [
            "AZURE_CLIENT_ID of the environment prod: id-of-oi-deploy-prod-0000-subscription",
            "AZURE_CLIENT_ID of the environment prod-preview: id-of-oi-preview-prod-0000-subscription",
        ],
    )
    return calls


def _read_option(call: list[str], name: str) -> str:
    return call[call.index(name) + 1] if name in call else ""


def test_each_workflow_identity_gets_the_least_rights(az_calls: list[list[str]]) -> None:
    """The identity for previews can only read and predict; the deployer's can also write, and assign certain roles."""
    granted = {
        (
            _read_option(call, "--assignee-object-id"),
            _read_option(call, "--role"),
            bool(_read_option(call, "--condition")),
        )
        for call in az_calls
        if call[:3] == ["role", "assignment", "create"]
    }
    assert granted == {
        ("object-of-id-of-oi-deploy-prod-0000-subscription", "Contributor", False),
        ("object-of-id-of-oi-deploy-prod-0000-subscription", "Role Based Access Control Administrator", True),
        ("object-of-id-of-oi-deploy-prod-0000-subscription", "Locks Contributor", False),
        ("object-of-id-of-oi-preview-prod-0000-subscription", "Reader", False),
        ("object-of-id-of-oi-preview-prod-0000-subscription", "Deployment what-if 0000-subscription", False),
    }
    [definition] = [
        _read_option(call, "--role-definition") for call in az_calls if call[:3] == ["role", "definition", "create"]
    ]
    assert json.loads(definition)["Actions"] == ["Microsoft.Resources/deployments/whatIf/action"]
    assert json.loads(definition)["AssignableScopes"] == ["/subscriptions/0000-subscription"]


def test_the_deployer_can_assign_only_roles_of_the_templates(az_calls: list[list[str]]) -> None:
    """The condition on the deployer's role allows it to assign and remove only the roles in roles.json."""
    [condition] = filter(None, (_read_option(call, "--condition") for call in az_calls))
    roles = set(json.loads((ROOT / "infra/bicep/roles.json").read_text(encoding="utf-8")).values())
    lists = [set(each.split(", ")) for each in re.findall(r"GuidEquals \{(.*?)\}", condition)]
    assert lists == [roles, roles]
    for source, action in (("Request", "write"), ("Resource", "delete")):
        guard = f"!(ActionMatches{{'Microsoft.Authorization/roleAssignments/{action}'}})"
        attribute = f"@{source}[Microsoft.Authorization/roleAssignments:RoleDefinitionId]"
        assert f"(({guard}) OR ({attribute} ForAnyOfAnyValues:GuidEquals" in condition
    assert condition.count("(") == condition.count(")")


def test_each_environment_signs_in_as_its_own_application(az_calls: list[list[str]]) -> None:
    """Each GitHub environment signs in as a separate application, so that the preview cannot act as the deployer."""
    federated = {
        (_read_option(call, "--id"), json.loads(_read_option(call, "--parameters"))["subject"])
        for call in az_calls
        if call[:4] == ["ad", "app", "federated-credential", "create"]
    }
    assert federated == {
        ("id-of-oi-deploy-prod-0000-subscription", "repo:plant/workspace:environment:prod"),
        ("id-of-oi-preview-prod-0000-subscription", "repo:plant/workspace:environment:prod-preview"),
    }


def _has_rights(az_calls: list[list[str]]) -> bool:
    return any(call[:3] == ["role", "assignment", "create"] for call in az_calls)


def test_an_application_that_exists_gets_no_rights_by_its_name(tmp_path: Path) -> None:
    """An application gets no right because of its name, since each user can register one of this name beforehand."""
    code, printed, calls = _run_github_deployers(tmp_path, EXISTING="foreign")
    assert (code, "foreign" in printed, _has_rights(calls)) == (1, True, False), printed
    assert not any("federated-credential" in call for call in calls)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"FEDERATED": f"{ISSUER}\trepo:other/workspace:environment:prod\n"}, "repo:other/workspace:environment:prod"),
        ({"FEDERATED": "https://other.example\trepo:plant/workspace:environment:prod\n"}, "https://other.example"),
        ({"APP_SECRET": "key-1"}, "secret"),
        ({"SERVICE_SECRET": "key-2"}, "secret"),
    ],
)
def test_an_application_of_others_gets_no_rights(tmp_path: Path, change: dict[str, str], fault: str) -> None:
    """An application in which another repository or a secret can sign in gets no rights, also by its client id."""
    mine = {"FEDERATED": f"{ISSUER}\trepo:plant/workspace:environment:prod\n"}
    code, printed, calls = _run_github_deployers(tmp_path, "foreign", **(mine | change))
    assert (code, fault in printed, "foreign" in printed, _has_rights(calls)) == (1, True, True, False), printed


@pytest.mark.parametrize("federated", ["", f"{ISSUER}\trepo:plant/workspace:environment:prod\n"])
def test_the_registration_can_be_repeated_with_the_client_ids(tmp_path: Path, federated: str) -> None:
    """With the client id, the script completes an application in which only the GitHub environment can sign in."""
    code, printed, calls = _run_github_deployers(tmp_path, "foreign", FEDERATED=federated)
    assert (code, printed.splitlines()[0]) == (0, "AZURE_CLIENT_ID of the environment prod: foreign")
    created = [call for call in calls if call[:4] == ["ad", "app", "federated-credential", "create"]]
    assert ("foreign" in {_read_option(call, "--id") for call in created}) == (not federated)


def test_the_functions_host_prefetches_a_whole_batch() -> None:
    """The Functions host prefetches at least one batch of events and polls every ten seconds."""
    extensions = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]
    assert extensions["eventHubs"]["prefetchCount"] >= extensions["eventHubs"]["maxEventBatchSize"]
    assert extensions["durableTask"]["storageProvider"]["maxQueuePollingInterval"] <= "00:00:10"
