"""Tests that the operators' pages refer only to existing parts."""

import inspect
import json
import re
import shutil
from pathlib import Path

from functions import triggers
from scripts.azure_commands import AZURE_PAGES, PAGES
from scripts.smoke.checks import CHECKS
from shared.settings import Settings, Stores
from tests.infra.bicep_model import evaluate_deployment
from tests.infra.situations import ENVIRONMENT, evaluate_situation
from tests.infra.templates import BICEP, Templates

ROOT = BICEP.parents[1]
AZURE = "".join(path.read_text(encoding="utf-8") for path in AZURE_PAGES)
FAILOVER = (ROOT / "docs" / "how-to" / "networks-failover-restore.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")


def test_every_template_is_documented() -> None:
    """The pages on Azure describe each template except two helper templates."""
    for template in Templates().all:
        name = template.path.stem
        assert name in {"main", "identity"} or f"{name}.bicep`" in AZURE, name


def test_every_alert_has_a_documented_remedy() -> None:
    """docs/how-to/operate.md has a remedy for each alert, with the alert's severity."""
    declared = {
        str(each.name).removesuffix(f"-{ENVIRONMENT['AZURE_LOCATION']}"): each.body["properties"]["severity"]
        for kind in ("scheduledQueryRules", "metricAlerts")
        for each in evaluate_situation("prod").list_resources(f"Microsoft.Insights/{kind}")
    }
    told = {
        name: int(severity) for name, severity in re.findall(r"^\| `([a-z0-9-]+)` \((\d)\)", OPERATIONS, re.MULTILINE)
    }
    assert told == declared


def test_every_check_of_the_smoke_test_is_explained() -> None:
    """docs/how-to/operate.md lists the checks of the smoke test in order, each with the rights that it requires."""
    section = OPERATIONS.partition("## Is it well")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z ]+)` \| [^|]+ \| ([^|]*)\|", section, re.MULTILINE)
    told = {name: set(re.findall(r"`(\w+\.\w+)`", rights)) for name, rights in rows}
    used = {
        name.replace("_", " "): {
            right
            for call in re.findall(r"context\.require_(?:member|two_members)\(([^)]*)\)", inspect.getsource(check))
            for right in re.findall(r'"(\w+\.\w+)"', call)
        }
        for name, check in CHECKS.items()
    }
    used["graphql"] = {"Catalog.Read"}  # the function that the checks share
    assert list(told) == list(used)
    assert told == used


def test_documented_template_parameters_exist() -> None:
    """Each documented parameter is a parameter of main.bicep, of the settings, or of an Azure command."""
    known = Templates().find_template("main").parameters | {
        "requestId",
        "principal",
        "throttled",
        "take_any",
        "serviceName",
    }
    known |= {"remoteBuild", "functionTimeout", "prefetchCount", "maxQueuePollingInterval"}
    # Azure's own names, and a parameter that has another name now.
    known |= {
        "enableAutomaticFailover",
        "blobServices",
        "immutabilityPolicies",
        "minTlsVersion",
        "gatewayCertificateSecretId",
        "lastSyncTime",
    }
    # Names in the workspace document.
    known |= {"requireBoundKeys", "requireDeclaredDevices", "messageIdPointer"}
    for text in (AZURE, OPERATIONS):
        for name in re.findall(r"`([a-z]+[A-Z]\w+)`", text):
            assert name in known, name


def test_documented_scripts_exist() -> None:
    """Each script and file in a documented command exists."""
    for path in set(re.findall(r"(?<![\w/])((?:scripts|infra|samples)/[\w./-]*\w)", AZURE + OPERATIONS)):
        assert (ROOT / path).exists(), path


def test_sample_of_settings_is_complete() -> None:
    """local.settings.sample.json has each setting of the service, except those that the platform sets."""
    values = json.loads((ROOT / "local.settings.sample.json").read_text(encoding="utf-8"))["Values"]
    known = {str(field.alias) for field in Settings.model_fields.values()} - {"WEBSITE_HOSTNAME"}
    assert set(values) == known | {"FUNCTIONS_WORKER_RUNTIME", "AzureWebJobsStorage"}
    assert all(isinstance(value, str) for value in values.values())
    assert Settings.read(values).stores is Stores.EMBEDDED


def _read_commands(text: str) -> str:
    """Return the commands of a page, with continued lines joined."""
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")


def test_keys_are_written_outside_of_the_repository() -> None:
    """Documented commands write keys and settings only to files below OI_HOME."""
    pattern = (
        r"(\S*?)((?:admin|editor)\.key|keys\.json|plant\.yaml|line-1\.json|(?<!-)checkpoint-key|[\w$]+\.env)(?![\w-])"
    )
    named = re.findall(pattern, _read_commands(AZURE) + _read_commands(OPERATIONS))
    assert len(named) > 30
    assert {before.split('"')[-1] for before, _ in named} == {"$OI_HOME/"}


def test_commands_name_the_resource_in_use() -> None:
    """No command takes the first of several resources; only the vault of a group is unique.

    After a failover or a restore the group has further resources of most kinds. The upgrade of an earlier version
    cannot know the outputs of this one.
    """
    pages = [page for page in PAGES if page.name != "upgrade-on-azure.md"]
    commands = "".join(_read_commands(page.read_text(encoding="utf-8")) for page in pages)
    first = re.findall(r"az (\w+ \w+)(?=.*\[0\]\.name)", commands)
    assert first == ["keyvault list"]


def test_every_variable_of_the_deployment_is_an_output() -> None:
    """Each variable in capitals in a documented command is an output, a setting, or set by a command of the pages."""
    commands = "".join(_read_commands(page.read_text(encoding="utf-8")) for page in PAGES)
    used = set(re.findall(r"\$\{?([A-Z][A-Z_]+)\b", commands))
    set_here = set(re.findall(r"\b([A-Z][A-Z_]+)=", commands))
    assert used <= set_here | Templates().find_template("main").outputs


def test_every_documented_deployment_uses_the_deployment_script() -> None:
    """Documented deployments use the script that chooses the deployment's name and runs the checks before deploying."""
    commands = _read_commands(AZURE) + _read_commands(OPERATIONS)
    assert commands.count("scripts/azure/deploy-templates ") > 10
    by_hand = re.findall(r"az deployment sub (\w[\w-]*)(.*)", commands)
    assert by_hand == [("delete", ' --name "workspace-$OI_ENVIRONMENT-$AZURE_LOCATION"')]
    for page in (AZURE, OPERATIONS):
        assert not re.search(r"az deployment sub (?:create|what-if)", page)


def test_every_documented_command_deploys_the_package() -> None:
    """No documented command builds the app in the cloud; every command deploys the tested package."""
    commands = _read_commands(AZURE)
    publishing = re.findall(r"az functionapp deployment source .*", commands)
    assert len(publishing) >= 2
    assert all(command.endswith("--src dist/app.zip --build-remote false") for command in publishing)
    assert "func azure functionapp publish" not in AZURE + OPERATIONS


def test_a_leaked_key_can_be_replaced() -> None:
    """The steps after a leaked key assign a temporary role that can create and disable versions of the key."""
    section = OPERATIONS.partition("### A signing key leaked")[2].partition("\n## ")[0]
    order = ("role assignment create", "key rotate", "key set-attributes", "role assignment delete")
    places = [section.index(command) for command in order]
    assert places == sorted(places)
    assert section.count("Key Vault Crypto Officer") >= 3
    assert "inside the network" in section


def test_every_environment_variable_of_parameter_files_is_documented() -> None:
    """The pages on Azure name each environment variable that a parameter file reads."""
    for path in BICEP.glob("*.bicepparam"):
        for name in re.findall(r"readEnvironmentVariable\('(\w+)'", path.read_text(encoding="utf-8")):
            assert re.search(rf"\b{name}\b", AZURE), name


def test_every_variable_of_the_runbook_is_set() -> None:
    """The runbook sets each variable that a deployment after a failover or restore reads."""
    for name in ("AZURE_ACTIVE_LOCATION", "EXISTING_VAULT_NAME", "EXISTING_DATA_STORAGE_NAME"):
        assert f"export {name}=" in FAILOVER
    assert "export COSMOS_NAME=NEW" in FAILOVER
    assert "\nCOSMOS_READ_REGIONS=none scripts/azure/deploy-templates create prod" in FAILOVER
    # Otherwise the restored account accepts account keys until the next deployment.
    assert "--public-network-access DISABLED \\\n  --disable-local-auth true\n" in FAILOVER


def test_the_runbook_renews_what_is_bound_to_the_old_app() -> None:
    """After a failover sign-in, data stores, Data Explorer and the operator get the new address and identity."""
    section = FAILOVER.partition("\n**6. Renew")[2].partition("\n**7.")[0]
    for needed in ("add-redirect-addresses", "Cosmos DB Operator", "a-data-explorer-cluster-that-exists", "*Viewer*"):
        assert needed in section, needed


def test_nothing_is_deleted_before_its_hubs_are_read() -> None:
    """On the way home the senders stop and the hubs are read to their end before the second region is deleted."""
    section = FAILOVER.partition("\n**Back home.**")[2].partition("\n## ")[0]
    order = ("switch off every sender", "read to their end", "Compare the rows", "Delete the group")
    places = [section.index(text) for text in order]
    assert places == sorted(places)
    assert "a data storage account that `EXISTING_DATA_STORAGE_NAME` named" in section[places[-1] :]
    assert "for container in cold checkpoints" in FAILOVER.partition("### The way back from another account")[2]


def _read_section(heading: str) -> str:
    """Return the text of a section of the runbook, up to the next heading of the same level."""
    return FAILOVER.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_documented_line_deploys_an_app_without_background_jobs(tmp_path: Path) -> None:
    """The line that the runbook adds to the parameter file disables the timer, and the runbook removes this line."""
    commands = _read_commands(_read_section("Background jobs run in one app"))
    [line] = re.findall(r'^echo "(.*)" >> infra/bicep/prod\.bicepparam$', commands, re.MULTILINE)
    [removed] = re.findall(r'^sed -i "/\^(.*)\$/d" infra/bicep/prod\.bicepparam$', commands, re.MULTILINE)
    assert removed == line
    shutil.copytree(BICEP, tmp_path / "bicep")
    parameters = tmp_path / "bicep" / "prod.bicepparam"
    with parameters.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    [settings] = evaluate_deployment(parameters, ENVIRONMENT).list_resources("Microsoft.Web/sites/config")
    assert settings.body["properties"]["AzureWebJobs.background.Disabled"] == "true"


def test_disabled_functions_exist() -> None:
    """Each function that the operators' pages disable or enable by a setting exists."""
    functions = {builder._function.get_function_name() for builder in triggers.blueprint._function_builders}
    named = set(re.findall(r"AzureWebJobs\.(\w+)\.Disabled", AZURE + OPERATIONS)) - {"NAME"}
    assert "background" in named
    assert named <= functions


def test_one_app_runs_background_jobs_during_a_failover() -> None:
    """In a failover and on the way home, the jobs of one app end before those of the other app start."""
    there, back = _read_section("A region is lost").split("**Back home.**")
    without, start = "[without background jobs]", "[start the jobs]"
    disable = "--settings AzureWebJobs.background.Disabled=true AzureWebJobs.live.Disabled=true"
    for text, order in (
        (there, ["cp ", "**5. Deploy**", without, "**7. ", '  . "$OI_HOME/home.env"', disable, start, "**8. "]),
        (back, ["last command of step 7", "\n2. ", without, "\n3. ", "with `away.env`", start, "\n4. "]),
    ):
        places = [text.index(each) for each in order]
        assert places == sorted(places)


def test_the_data_storage_fails_over_on_the_way_home_without_loss() -> None:
    """On the way home both apps stop, and the last synchronisation is later, before the data storage fails over."""
    there, back = _read_section("A region is lost").split("**Back home.**")
    step = back.partition("\n2. ")[0]
    order = (
        "for name in outputs home; do",
        "az functionapp stop",
        "date --utc",
        "`lastSyncTime` is later",
        "az storage account failover",
        "az functionapp start",
    )
    places = [step.index(text) for text in order]
    assert places == sorted(places)
    drill = there.partition("\n**3. ")[2].partition("*In an outage*")[0]
    for text in (drill, step):
        assert 'failover -n "$DATA_STORAGE_NAME" --failover-type Planned --yes' in text


def test_the_way_home_removes_each_setting_of_the_failover() -> None:
    """The way home removes from the file, the shell and the workflow each setting that the failover wrote."""
    there, back = _read_section("A region is lost").split("**Back home.**")
    [written] = re.findall(r'prod\.env" <<END\n(.*?)END\n', there, re.DOTALL)
    names = re.findall(r"export (\w+)=", written)
    assert len(names) == 3
    commands = _read_commands(back)
    assert f"({'|'.join(names)})=/d" in commands
    assert f"unset {' '.join(names)}\n" in commands
    assert f"for name in {' '.join(names)}; do" in commands
    assert "for environment in prod prod-preview; do" in commands
    assert 'gh variable delete "$name" --env "$environment"' in commands


def test_a_restored_account_signs_nothing_before_it_is_kept() -> None:
    """The app runs without background jobs on a restored account, because its checkpoints break the old account."""
    anchor = "(#background-jobs-run-in-one-app)"
    restore = _read_section("Restore")
    order = (anchor, "scripts/azure/deploy-templates create", "prove the chains", "start the background jobs")
    places = [restore.index(text) for text in order]
    assert places == sorted(places)
    drill = _read_section("Drill").partition("\n2. ")[0]
    assert drill.index(anchor) < drill.index("`--without checkpoint`") < drill.index("remove `COSMOS_NAME`")
    assert "make no audit bundle" in drill
    end = OPERATIONS.partition("## Back up and restore")[2].partition("\n## ")[0]
    assert f"networks-failover-restore.md{anchor[1:-1]}" in end
