"""Tests of the templates in each situation (size, variables and parameters) of a deployment."""

import json
import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from itertools import combinations
from typing import Any

import duckdb_kql
import pytest

from shared.observability.metrics import INSTRUMENTS
from tests.infra.bicep_model import Deployment, DeploymentError, Resource, deploy_template, evaluate_deployment
from tests.infra.situations import ENVIRONMENT, SITUATIONS, evaluate_situation
from tests.infra.templates import BICEP, Templates

POLICY = "Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies"
ENDPOINT = "Microsoft.Network/privateEndpoints"
KUSTO_ENDPOINT = "Microsoft.Kusto/clusters/managedPrivateEndpoints"
COSMOS = "Microsoft.DocumentDB/databaseAccounts"
VAULT = "Microsoft.KeyVault/vaults"
STORAGE = "Microsoft.Storage/storageAccounts"
ROLE = "Microsoft.Authorization/roleAssignments"
RULE = "Microsoft.Insights/scheduledQueryRules"
NOT_LOCATED = {None, "", "global"}
LEGAL = {
    STORAGE: r"[a-z0-9]{3,24}",
    VAULT: r"(?!.*--)[a-zA-Z][a-zA-Z0-9-]{1,22}[a-zA-Z0-9]",
    COSMOS: r"[a-z0-9][a-z0-9-]{1,42}[a-z0-9]",
    "Microsoft.Kusto/clusters": r"[a-z][a-z0-9]{3,21}",
    "Microsoft.EventHub/namespaces": r"[a-zA-Z][a-zA-Z0-9-]{4,48}[a-zA-Z0-9]",
    "Microsoft.SignalRService/webPubSub": r"[a-zA-Z][a-zA-Z0-9-]{1,61}[a-zA-Z0-9]",
    "Microsoft.Devices/IotHubs": r"[a-zA-Z0-9-]{2,49}[a-zA-Z0-9]",
    "Microsoft.Web/sites": r"[a-zA-Z0-9][a-zA-Z0-9-]{0,58}[a-zA-Z0-9]",
    "Microsoft.Web/serverfarms": r"[a-zA-Z0-9-]{1,40}",
    "Microsoft.ManagedIdentity/userAssignedIdentities": r"[a-zA-Z0-9][a-zA-Z0-9_-]{2,127}",
    "Microsoft.OperationalInsights/workspaces": r"[a-zA-Z0-9][a-zA-Z0-9-]{2,61}[a-zA-Z0-9]",
    "Microsoft.Resources/resourceGroups": r"[\w.()-]{1,89}[\w()-]",
    ENDPOINT: r"[a-zA-Z0-9][\w.-]{0,78}\w",
}
"""Names that Azure accepts, by type: https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules."""


def find_only_resource(deployment: Deployment, kind: str, start: str = "") -> Resource:
    """Return the only resource of the given type whose name begins with this text."""
    [found] = [each for each in deployment.list_resources(kind) if str(each.name).startswith(start)]
    return found


def list_settings(deployment: Deployment) -> dict[str, str]:
    """Return the settings of the app by name."""
    [found] = deployment.list_resources("Microsoft.Web/sites/config")
    settings: dict[str, str] = found.body["properties"]
    return settings


def list_regions(deployment: Deployment) -> list[str]:
    """Return the regions of the Cosmos DB account in the order of the template."""
    locations = find_only_resource(deployment, COSMOS).body["properties"]["locations"]
    assert [each["failoverPriority"] for each in locations] == list(range(len(locations)))
    return [each["locationName"] for each in locations]


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_deployment_preview_shows_every_resource(name: str) -> None:
    """A preview hides no module, and each resource has a name and an id before the deployment."""
    deployment = evaluate_situation(name)
    assert deployment.hidden == []
    assert [each.path for each in deployment.resources if each.name is None or each.id is None] == []


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_name_or_number_depends_on_an_output(name: str) -> None:
    """No name, number or condition in the templates depends on the output of a module."""
    situation = SITUATIONS[name]
    environment = {**ENVIRONMENT, **situation.environment}
    strict = evaluate_deployment(
        BICEP / f"{situation.size}.bicepparam", environment, situation.overrides, hides_outputs=True
    )
    assert strict.hidden == []
    assert [each.id for each in strict.resources] == [each.id for each in evaluate_situation(name).resources]


@pytest.mark.parametrize("name", SITUATIONS)
def test_resource_ids_are_unique_and_names_are_accepted_by_azure(name: str) -> None:
    """Resource ids are unique, and Azure accepts each name."""
    deployment = evaluate_situation(name)
    ids = [each.id for each in deployment.resources if "diagnosticSettings" not in each.type]
    assert [each for each in ids if ids.count(each) > 1] == []
    for kind, pattern in LEGAL.items():
        for each in deployment.list_names(kind):
            assert re.fullmatch(pattern, str(each)), (kind, each)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("prod", 17), ("everything", 19), ("failed over", 17), ("dev", 17), ("existing Data Explorer", 16)],
)
def test_names_of_role_assignments_are_known_before_the_deployment(name: str, expected: int) -> None:
    """Number and names of role assignments are known before the deployment."""
    names = evaluate_situation(name).list_names(ROLE)
    assert len(names) == len(set(names)) == expected
    assert len(evaluate_situation(name).list_resources(f"{COSMOS}/sqlRoleAssignments")) == 2


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_locked_immutability_policy_is_omitted(name: str) -> None:
    """If the immutability policy is locked, the deployment omits the policy and nothing else."""
    is_written = name not in {"locked", "failed over"}
    assert len(evaluate_situation(name).list_resources(POLICY)) == is_written
    if name == "locked":
        ids = {each.id for each in evaluate_situation("prod").resources} - {
            each.id for each in evaluate_situation("locked").resources
        }
        assert ids == {find_only_resource(evaluate_situation("prod"), POLICY).id}


@pytest.mark.parametrize("name", ["failed over", "everything failed over"])
def test_a_second_region_creates_only_compute_resources(name: str) -> None:
    """A deployment in a second region does not change shared resources; it creates new resources for compute."""
    before = {each.id: each for each in evaluate_situation("everything").resources}
    for each in evaluate_situation(name).resources:
        if each.id in before:
            assert each.location == before[each.id].location, each.id
        elif each.location not in NOT_LOCATED:
            assert each.location == "northeurope", each.id


def test_second_region_uses_the_stores_of_the_first() -> None:
    """After a failover, the app uses the same vault, data storage and Cosmos DB account as before."""
    home, away = evaluate_situation("prod"), evaluate_situation("failed over")
    assert away.list_resources(VAULT) == []
    assert [each.name for each in away.list_resources(STORAGE)] == [find_only_resource(away, STORAGE, "sthost").name]
    assert find_only_resource(away, COSMOS).id == find_only_resource(home, COSMOS).id
    assert find_only_resource(away, COSMOS).location == "westeurope"
    assert away.outputs["VAULT_NAME"] == "kv-prod-home"
    assert away.outputs["DATA_STORAGE_NAME"] == "stdataprodhome"
    other = evaluate_situation("everything failed over")
    assert find_only_resource(other, VAULT).id == find_only_resource(home, VAULT).id
    assert find_only_resource(other, STORAGE, "stdata").id == find_only_resource(home, STORAGE, "stdata").id


def test_outputs_name_the_resources_in_use() -> None:
    """After a failover the outputs name the new resources of the second region, and after a restore the new account."""
    kinds = {
        "COSMOS_ACCOUNT_NAME": (COSMOS, ""),
        "EVENT_HUBS_NAME": ("Microsoft.EventHub/namespaces", ""),
        "HOST_STORAGE_NAME": (STORAGE, "sthost"),
        "INSIGHTS_NAME": ("Microsoft.Insights/components", ""),
        "LOG_WORKSPACE_NAME": ("Microsoft.OperationalInsights/workspaces", ""),
        "KUSTO_NAME": ("Microsoft.Kusto/clusters", ""),
    }
    for situation in ("prod", "failed over", "restored"):
        deployment = evaluate_situation(situation)
        for output, (kind, start) in kinds.items():
            assert deployment.outputs[output] == find_only_resource(deployment, kind, start).name, output


def test_outputs_have_the_addresses_of_the_console_in_each_region() -> None:
    """Before a failover the outputs have the console's address in both regions, or the address of the gateway alone."""
    home, away = evaluate_situation("prod"), evaluate_situation("failed over")
    apps = {find_only_resource(each, "Microsoft.Web/sites").name for each in (home, away)}
    assert set(home.outputs["CONSOLE_URLS"].split()) == {f"https://{app}.azurewebsites.net/console/" for app in apps}
    assert evaluate_situation("everything").outputs["CONSOLE_URLS"] == "https://plant.example/console/"


def test_outputs_have_the_address_of_the_console_in_use() -> None:
    """The outputs have the address of the app in the active region, also if Cosmos DB has only the home region."""
    deployment = evaluate_deployment(BICEP / "dev.bicepparam", ENVIRONMENT | {"AZURE_ACTIVE_LOCATION": "northeurope"})
    assert list_regions(deployment) == ["westeurope"]
    app = find_only_resource(deployment, "Microsoft.Web/sites").name
    assert f"https://{app}.azurewebsites.net/console/" in deployment.outputs["CONSOLE_URLS"].split()


def test_two_connections_can_read_one_hub_of_their_own() -> None:
    """A hub that connections read with different consumer groups is created once, with each group and one role."""
    sources = [{"hub": "line-7", "consumerGroup": group} for group in ("idw", "quality", "$Default")]
    deployment = evaluate_deployment(BICEP / "prod.bicepparam", ENVIRONMENT, {"ownHubs": sources})
    ids = [each.id for each in deployment.resources if "diagnosticSettings" not in each.type]
    assert [each for each in ids if ids.count(each) > 1] == []
    groups = deployment.list_names("Microsoft.EventHub/namespaces/eventhubs/consumergroups")
    assert {str(each).partition("/")[2] for each in groups} >= {"line-7/idw", "line-7/quality"}
    assert list_settings(deployment)["EVENT_HUB_SOURCES"] == "line-7/idw,line-7/quality,line-7/$Default"


@pytest.mark.parametrize("database", ["Telemetry", "Plant"])
def test_the_outputs_name_the_database_of_telemetry(database: str) -> None:
    """A deployment prints the database that the app queries, so that commands of operators use the same one."""
    given = {"existingKustoUri": "https://plant.westeurope.kusto.windows.net", "kustoDatabase": database}
    deployment = evaluate_deployment(BICEP / "dev.bicepparam", ENVIRONMENT, given)
    assert deployment.outputs["KUSTO_DATABASE"] == list_settings(deployment)["KUSTO_DATABASE"] == database


@pytest.mark.parametrize("size", ["dev", "test", "prod", "main"])
@pytest.mark.parametrize(("version", "signer"), [("", "checkpoint-signing"), ("0a1b", "checkpoint-signing/0a1b")])
def test_a_deployment_keeps_the_chosen_version_of_the_checkpoint_key(size: str, version: str, signer: str) -> None:
    """CHECKPOINT_KEY_VERSION selects the version that signs checkpoints, and changes no key in the vault."""
    environment = ENVIRONMENT | {"CHECKPOINT_KEY_VERSION": version}
    deployment = evaluate_deployment(BICEP / f"{size}.bicepparam", environment)
    assert list_settings(deployment)["CHECKPOINT_KEY"] == signer
    keys = {str(name).rpartition("/")[2] for name in deployment.list_names(f"{VAULT}/keys")}
    assert keys == {"token-signing", "checkpoint-signing"}


def test_a_parameter_adds_and_replaces_settings_of_the_app() -> None:
    """The parameter appSettings adds settings and replaces those of the templates, in each deployment."""
    chosen = {"COMPACTION_SCHEDULE": "0 0 * * * *", "DOWNLOAD_HOURS": "12"}
    deployment = evaluate_deployment(BICEP / "prod.bicepparam", ENVIRONMENT, {"appSettings": chosen})
    assert list_settings(deployment) == list_settings(evaluate_situation("prod")) | chosen


def test_a_deployment_without_live_stream_publishes_nothing() -> None:
    """Without a live stream the app has no address to publish to, and no output names a hub to configure."""
    deployment = evaluate_deployment(BICEP / "prod.bicepparam", ENVIRONMENT, {"withLiveStream": False})
    assert list_settings(deployment)["WEB_PUBSUB_ENDPOINT"] == deployment.outputs["WEB_PUBSUB_NAME"] == ""
    service = find_only_resource(deployment, "Microsoft.SignalRService/webPubSub")
    assert service.body["sku"]["capacity"] == 1
    with_stream = evaluate_situation("prod")
    assert with_stream.outputs["WEB_PUBSUB_NAME"] == service.name
    assert list_settings(with_stream)["WEB_PUBSUB_ENDPOINT"] != ""


def test_queued_ingestion_replaces_streaming_ingestion() -> None:
    """If streamingIngestion is false, the script of the database disables streaming ingestion, and it runs again."""
    path = BICEP / "modules" / "data-explorer.bicep"
    names = Templates().find_template("data-explorer").required - {"tags", "capacity", "privateSources"}
    given = dict.fromkeys(names, "x") | {"tags": {}, "capacity": 1, "privateSources": False}
    given |= {"hotDays": 1, "retentionDays": 1}
    found = []
    for streams in (True, False):
        deployment = deploy_template(path, given | {"streamingIngestion": streams})
        script = find_only_resource(deployment, "Microsoft.Kusto/clusters/databases/scripts").body["properties"]
        found.append(
            (re.findall(r"policy streamingingestion (\w+)", script["scriptContent"]), script["forceUpdateTag"])
        )
    (streaming, first_tag), (queued, second_tag) = found
    assert (streaming, queued) == (["enable"], ["disable"])
    assert first_tag != second_tag


def test_second_region_has_separate_private_dns_zones() -> None:
    """The private DNS zones of the second region are in another resource group, because the zones' names are fixed."""
    zones = {str(each.id) for each in evaluate_situation("prod").list_resources("Microsoft.Network/privateDnsZones")}
    away = {
        str(each.id) for each in evaluate_situation("failed over").list_resources("Microsoft.Network/privateDnsZones")
    }
    assert len(zones) == len(away) == 6
    assert all("/rg-oi-prod/" in each for each in zones)
    assert all("/rg-oi-prod-northeurope/" in each for each in away)


def test_alerts_and_endpoints_have_their_region_in_their_name() -> None:
    """Names of endpoints and alerts contain the region, because Azure cannot move them."""
    kinds = ("scheduledQueryRules", "metricAlerts", "actionGroups", "webtests")
    for name, region in (("prod", "westeurope"), ("failed over", "northeurope")):
        deployment = evaluate_situation(name)
        alerts = [str(each.name) for each in deployment.resources if each.type.endswith(kinds)]
        assert len(alerts) == 16
        assert all(each.endswith(f"-{region}") for each in alerts)
        assert all(f"-{region}-" in str(each) for each in deployment.list_names(ENDPOINT))


def test_restored_account_gets_a_new_private_endpoint() -> None:
    """Only a restored account gets a new private endpoint, because an endpoint's target cannot change."""
    before, after = (
        set(evaluate_situation("prod").list_names(ENDPOINT)),
        set(evaluate_situation("restored").list_names(ENDPOINT)),
    )
    assert {str(each).rpartition("-")[0] for each in before ^ after} == {"pep-cosmos-westeurope"}
    assert len(after) == 7
    assert (
        find_only_resource(evaluate_situation("restored"), COSMOS).body["properties"]["publicNetworkAccess"]
        == "Disabled"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("prod", ["westeurope", "northeurope"]),
        ("failed over", ["northeurope", "westeurope"]),
        ("other home", ["northeurope"]),
        ("restored", ["westeurope"]),
        ("dev", ["westeurope"]),
    ],
)
def test_cosmos_regions_are_distinct_and_the_active_one_writes(name: str, expected: list[str]) -> None:
    """The Cosmos DB regions of a deployment are distinct, and the first one is the region of the app."""
    assert list_regions(evaluate_situation(name)) == expected


@pytest.mark.parametrize("spelling", ["West Europe", "westeurope", "WestEurope", "WEST EUROPE"])
def test_the_spelling_of_a_region_does_not_change_the_resources(spelling: str) -> None:
    """Letter case and spaces in a region's name do not change the resources."""
    environment = {"AZURE_LOCATION": spelling, "COSMOS_READ_REGIONS": "North Europe"}
    deployment = evaluate_deployment(BICEP / "prod.bicepparam", ENVIRONMENT | environment)
    assert [each.id for each in deployment.resources] == [each.id for each in evaluate_situation("prod").resources]
    assert list_regions(deployment) == ["westeurope", "northeurope"]


def test_the_number_of_regions_changes_only_the_locations_of_cosmos_db() -> None:
    """The number of regions changes only the locations, because Cosmos DB rejects other changes in the same update."""
    one_region, two_regions = (
        find_only_resource(evaluate_situation(name), COSMOS).body["properties"] for name in ("other home", "prod")
    )
    assert one_region["locations"] != two_regions["locations"]
    assert one_region | {"locations": []} == two_regions | {"locations": []}


def test_cosmos_db_has_strong_consistency_by_default() -> None:
    """No acknowledged record is lost with a region, unless COSMOS_CONSISTENCY selects bounded staleness."""
    for name in SITUATIONS:
        policy = find_only_resource(evaluate_situation(name), COSMOS).body["properties"]["consistencyPolicy"]
        expected = (
            {"defaultConsistencyLevel": "BoundedStaleness", "maxStalenessPrefix": 100000, "maxIntervalInSeconds": 300}
            if name == "bounded staleness"
            else {"defaultConsistencyLevel": "Strong"}
        )
        assert policy == expected


@pytest.mark.parametrize("name", SITUATIONS)
def test_cosmos_db_changes_run_one_after_another(name: str) -> None:
    """Containers are created one after another, and then the roles, because Cosmos DB allows one change at a time."""
    roles = evaluate_situation(name).list_resources(f"{COSMOS}/sqlRoleAssignments")
    containers = evaluate_situation(name).list_resources(f"{COSMOS}/sqlDatabases/containers")
    assert all(each.batched for each in containers + roles)
    assert all("container" in each.after for each in roles)


@pytest.mark.parametrize(("name", "expected"), [("dev", None), ("test", None), ("azd", None), ("prod", True)])
def test_purge_protection_is_omitted_outside_production(name: str, expected: object) -> None:
    """Purge protection is set in production and omitted elsewhere, because Azure rejects the value false."""
    properties = find_only_resource(evaluate_situation(name), VAULT).body["properties"]
    assert properties["enablePurgeProtection"] is expected
    assert properties["createMode"] == "default"


def test_deleted_vault_can_be_recovered() -> None:
    """VAULT_CREATE_MODE recovers the deleted vault of the same name."""
    deployment = evaluate_deployment(BICEP / "dev.bicepparam", ENVIRONMENT | {"VAULT_CREATE_MODE": "recover"})
    assert find_only_resource(deployment, VAULT).body["properties"]["createMode"] == "recover"


@pytest.mark.parametrize("name", ["Plant_1", "my plant", "plänt", "-plant", "plant-", "a--b", "a", "a-name-of-13s"])
def test_illegal_environment_name_is_rejected(name: str) -> None:
    """An environment name has 2 to 12 letters, digits and single inner hyphens; other names are rejected."""
    with pytest.raises(DeploymentError, match="environmentName"):
        evaluate_deployment(BICEP / "main.bicepparam", ENVIRONMENT | {"AZURE_ENV_NAME": name})


@pytest.mark.parametrize("name", ["Plant-North1", "a1", "p-1", "PROD", "a-b-c-d-e-f1"])
@pytest.mark.parametrize("region", ["germanywestcentral", "uk south"])
def test_azure_accepts_the_longest_names(name: str, region: str) -> None:
    """Azure accepts each name even with the longest environment and region names, also after a failover."""
    for active in ("", "switzerlandnorth"):
        environment = {"AZURE_ENV_NAME": name, "AZURE_LOCATION": region, "AZURE_ACTIVE_LOCATION": active}
        deployment = evaluate_deployment(BICEP / "main.bicepparam", ENVIRONMENT | environment, {"withIotHub": True})
        for kind, pattern in LEGAL.items():
            for each in deployment.list_names(kind):
                assert re.fullmatch(pattern, str(each)), (kind, each)


def test_letter_case_of_an_environment_name_changes_no_resource_group_or_store() -> None:
    """Environments whose names differ only in letter case have the same resource group and stores."""
    small, large = (
        evaluate_deployment(BICEP / "main.bicepparam", ENVIRONMENT | {"AZURE_ENV_NAME": n}) for n in ("prod", "Prod")
    )
    assert [each.id for each in small.resources] == [each.id for each in large.resources]


@pytest.mark.parametrize("size", ["dev", "test", "prod", "main"])
def test_only_three_environment_variables_are_required(size: str) -> None:
    """Three environment variables are required; all others have defaults."""
    required = {"AZURE_PRINCIPAL_ID", "WEB_PUBSUB_AUDIENCE", "ALERT_EMAILS"}
    evaluate_deployment(BICEP / f"{size}.bicepparam", {name: ENVIRONMENT[name] for name in required})
    missing = {"main": set(), "prod": required}.get(size, required - {"ALERT_EMAILS"})
    for name in missing:
        with pytest.raises(DeploymentError, match=name):
            evaluate_deployment(BICEP / f"{size}.bicepparam", {each: ENVIRONMENT[each] for each in required - {name}})


def test_production_requires_addresses_for_alerts() -> None:
    """In production, the addresses for alerts are required, and each address is notified of alerts."""
    with pytest.raises(DeploymentError, match="alertEmails"):
        evaluate_deployment(BICEP / "prod.bicepparam", ENVIRONMENT | {"ALERT_EMAILS": ""})
    kind = "Microsoft.Insights/actionGroups"
    group = find_only_resource(evaluate_situation("prod"), kind).body["properties"]
    assert [each["emailAddress"] for each in group["emailReceivers"]] == [
        "operators@plant.example",
        "night@plant.example",
    ]
    assert evaluate_deployment(BICEP / "dev.bicepparam", ENVIRONMENT | {"ALERT_EMAILS": ""}).list_resources(kind) == []
    names = evaluate_situation("prod").list_names(RULE)
    assert "chain-broken-westeurope" in names


@pytest.mark.parametrize(
    ("parameter", "value", "fault"),
    [
        ("alwaysReady", [{"name": "http", "instances": 1}], r"alwaysReady\[0\].instances is unknown"),
        ("ownHubs", [{"hub": "line-7"}], r"ownHubs\[0\].consumerGroup is missing"),
        ("tags", {"plant": 1}, "tags.plant must be of type string"),
        ("hubPartitions", 99, "hubPartitions violates maxValue 32"),
        ("cosmosMode", "provisioned", "cosmosMode violates allowed"),
        ("maximumInstances", 39, "maximumInstances violates minValue 40"),
        ("homeNetwork", "10.40.0.0/22", "homeNetwork violates maxLength 7"),
        ("corsOrigins", "https://plant.example", "corsOrigins must be an array"),
        ("checkpointsLock", True, "does not declare"),
    ],
)
def test_wrong_template_parameters_are_rejected(parameter: str, value: Any, fault: str) -> None:
    """A misspelt or missing parameter property, a wrong type or a value out of bounds fails before the deployment."""
    with pytest.raises(DeploymentError, match=fault):
        evaluate_deployment(BICEP / "dev.bicepparam", ENVIRONMENT, {parameter: value})


def test_orchestrations_have_an_always_ready_instance() -> None:
    """Sizes with always-ready instances have one always-ready instance for orchestrations."""
    for name in ("test", "prod"):
        ready = _read_scale(name)["alwaysReady"]
        assert "durable" in {each["name"] for each in ready}


def test_the_production_host_is_zone_redundant() -> None:
    """In production, plan and storage are zone redundant, and each group has at least two instances."""
    assert (
        find_only_resource(evaluate_situation("prod"), "Microsoft.Web/serverfarms").body["properties"]["zoneRedundant"]
        is True
    )
    assert find_only_resource(evaluate_situation("prod"), STORAGE, "sthost").body["sku"]["name"] == "Standard_ZRS"
    assert min(each["instanceCount"] for each in _read_scale("prod")["alwaysReady"]) == 2
    assert (
        find_only_resource(evaluate_situation("dev"), "Microsoft.Web/serverfarms").body["properties"]["zoneRedundant"]
        is False
    )


def test_names_outside_of_a_private_dns_zone_are_found_in_public_dns() -> None:
    """Each private DNS zone exists once; Azure looks up names that the zone does not contain in public DNS."""
    links = evaluate_situation("prod").list_resources("Microsoft.Network/privateDnsZones/virtualNetworkLinks")
    assert {each.body["properties"]["resolutionPolicy"] for each in links} == {"NxDomainRedirect"}
    zones = evaluate_situation("prod").list_names("Microsoft.Network/privateDnsZones")
    assert len(zones) == len(set(zones)) == len(links) == 6


@pytest.mark.parametrize("name", ["prod", "failed over", "everything"])
def test_data_explorer_reads_closed_hubs_and_files_through_private_endpoints(name: str) -> None:
    """If hubs and files have no public address, Data Explorer gets a private endpoint to both, one after the other."""
    closed = evaluate_situation(name)
    paths = closed.list_resources(KUSTO_ENDPOINT)
    group = str(find_only_resource(closed, COSMOS).id).partition("/providers/")[0]
    targets = {each.body["properties"]["groupId"]: each.body["properties"]["privateLinkResourceId"] for each in paths}
    assert targets == {
        "namespace": find_only_resource(closed, "Microsoft.EventHub/namespaces").id,
        "blob": f"{group}/providers/{STORAGE}/{closed.outputs['DATA_STORAGE_NAME']}",
    }
    assert [each.after for each in paths] == [frozenset({"ingestor"}), frozenset({"privatePath"})]
    feed = find_only_resource(closed, "Microsoft.Kusto/clusters/databases/dataConnections")
    assert {"blobPath", "privatePath", "reader"} <= feed.after


def test_open_hubs_and_files_need_no_private_endpoint_of_data_explorer() -> None:
    """If hubs and files have public addresses, Data Explorer has no private endpoint."""
    assert evaluate_situation("dev").list_resources(KUSTO_ENDPOINT) == []


def test_closed_event_hubs_accept_trusted_services() -> None:
    """Event Hubs without a public address accept trusted services, such as IoT Hub."""
    closed = evaluate_situation("prod")
    rules = find_only_resource(closed, "Microsoft.EventHub/namespaces/networkRuleSets").body["properties"]
    assert (rules["publicNetworkAccess"], rules["trustedServiceAccessEnabled"]) == ("Disabled", True)


def test_one_database_script_prepares_data_explorer() -> None:
    """One script of the database creates the table and sets the policy, and the deployer keeps its rights for the next.

    Azure documents database commands only, and not which rights it removes after a script.
    """
    [script] = evaluate_situation("prod").list_resources("Microsoft.Kusto/clusters/databases/scripts")
    properties = script.body["properties"]
    assert "scriptLevel" not in properties
    assert properties["principalPermissionsAction"] == "RetainPermissionOnScriptCompletion"
    assert script.version >= "2024-04-13"
    commands = Templates().find_template("data-explorer").read_variable("policyCommand") + "\n"
    commands += (BICEP / "telemetry.kql").read_text(encoding="utf-8")
    verbs = re.findall(r"^\.([a-z-]+)", commands, re.MULTILINE)
    assert set(verbs) <= {"create", "create-or-alter", "create-merge", "alter", "alter-merge", "add"}
    assert len(verbs) == 5


def test_log_analytics_receives_logs_only() -> None:
    """No diagnostic setting copies metrics to Log Analytics, which bills by GB; alerts read the platform's metrics."""
    settings = evaluate_situation("everything").list_resources("Microsoft.Insights/diagnosticSettings")
    assert len(settings) > 3
    assert [
        each.id for each in settings if each.body["properties"].get("metrics") or not each.body["properties"]["logs"]
    ] == []


@pytest.mark.parametrize(("size", "least"), [("dev", 1), ("test", 1), ("main", 1), ("prod", 2)])
def test_a_deployment_does_not_lower_the_units_of_event_hubs(size: str, least: int) -> None:
    """Event Hubs keeps the units to which it has scaled, and has at least those of the size."""
    for used, expected in (("0", least), ("3", 3)):
        environment = ENVIRONMENT | {"THROUGHPUT_UNITS": used}
        deployment = evaluate_deployment(BICEP / f"{size}.bicepparam", environment)
        assert find_only_resource(deployment, "Microsoft.EventHub/namespaces").body["sku"]["capacity"] == expected
    unset = evaluate_deployment(BICEP / f"{size}.bicepparam", ENVIRONMENT)
    assert find_only_resource(unset, "Microsoft.EventHub/namespaces").body["sku"]["capacity"] == least


def test_the_subnet_of_the_app_has_a_nat_gateway() -> None:
    """The app's subnet has a NAT gateway if the app uses the network, but not if only the application gateway does."""
    subnets = find_only_resource(evaluate_situation("prod"), "Microsoft.Network/virtualNetworks").body["properties"][
        "subnets"
    ]
    by_name = {each["name"]: each["properties"] for each in subnets}
    assert (
        by_name["app"]["natGateway"]["id"]
        == find_only_resource(evaluate_situation("prod"), "Microsoft.Network/natGateways").id
    )
    assert by_name["app"]["defaultOutboundAccess"] is False
    parameters = {"gatewayHostName": "plant.example", "gatewayCertificateSecretUri": "x", "gatewayIdentityId": "y"}
    with_gateway = evaluate_deployment(BICEP / "dev.bicepparam", ENVIRONMENT, parameters)
    assert with_gateway.list_resources("Microsoft.Network/natGateways") == []
    assert len(with_gateway.list_resources("Microsoft.Network/virtualNetworks")) == 1


def list_networks(deployment: Deployment) -> list[IPv4Network]:
    """Return the address space of the deployment's virtual network, and then those of its subnets."""
    properties = find_only_resource(deployment, "Microsoft.Network/virtualNetworks").body["properties"]
    [space] = properties["addressSpace"]["addressPrefixes"]
    return [
        IPv4Network(each) for each in (space, *(each["properties"]["addressPrefix"] for each in properties["subnets"]))
    ]


@pytest.mark.parametrize("overrides", [{}, {"homeNetwork": "172.16", "secondNetwork": "172.31"}])
def test_networks_of_two_regions_do_not_overlap(overrides: dict[str, str]) -> None:
    """The plant's network can be peered with the networks of both regions at once, so their addresses differ."""
    spaces = []
    for region in ("", "northeurope"):
        environment = ENVIRONMENT | {"AZURE_ACTIVE_LOCATION": region}
        space, *subnets = list_networks(evaluate_deployment(BICEP / "prod.bicepparam", environment, overrides))
        assert len(subnets) == 3
        assert all(each.subnet_of(space) for each in subnets)
        assert not any(one.overlaps(other) for one, other in combinations(subnets, 2))
        spaces.append(space)
    assert not spaces[0].overlaps(spaces[1])
    if overrides:
        assert [str(each) for each in spaces] == ["172.16.0.0/22", "172.31.0.0/22"]


def test_equal_networks_of_two_regions_are_rejected() -> None:
    """A deployment is rejected if the networks of both regions would have the same addresses."""
    with pytest.raises(DeploymentError, match="homeNetwork and secondNetwork must differ"):
        evaluate_deployment(BICEP / "prod.bicepparam", ENVIRONMENT, {"homeNetwork": "10.41"})


@pytest.mark.parametrize("network", ["10.40.", "300.1", "1040", "010.40", "10.x", "10.4.1", ".10"])
@pytest.mark.parametrize("parameter", ["homeNetwork", "secondNetwork"])
def test_networks_that_are_no_addresses_are_rejected(parameter: str, network: str) -> None:
    """A deployment is rejected if a network is not written as two numbers from 0 to 255 without leading zeros."""
    rule = "homeNetwork and secondNetwork must each be two numbers from 0 to 255"
    with pytest.raises(DeploymentError, match=f"{rule}.*{re.escape(network)}"):
        evaluate_deployment(BICEP / "prod.bicepparam", ENVIRONMENT, {parameter: network})


def test_the_gateway_probe_requests_a_path_that_replies_to_get() -> None:
    """The health probe of Web PubSub requests a path that replies to GET, and not only to HEAD."""
    gateway = find_only_resource(evaluate_situation("everything"), "Microsoft.Network/applicationGateways").body[
        "properties"
    ]
    probes = {each["name"]: each["properties"] for each in gateway["probes"]}
    assert probes["web-pubsub"]["path"] == "/client"
    assert probes["web-pubsub"]["match"] == {"statusCodes": ["200-499"]}


def test_the_ingestion_alert_covers_all_ingest_functions() -> None:
    """The ingestion alert covers all ingest functions, also those of connections' own hubs, but not the live stream."""
    rule = find_only_resource(evaluate_situation("prod"), RULE, "ingest-lag").body["properties"]
    query = rule["criteria"]["allOf"][0]["query"]
    assert query.endswith('| where OperationName in ("archive", "live") or OperationName startswith "ingest"')


def test_an_archive_that_falls_behind_raises_an_alert() -> None:
    """The alert on late telemetry covers every consumer group that measures its lag, also the archive."""
    rule = find_only_resource(evaluate_situation("prod"), RULE, "ingest-behind").body["properties"]
    [condition] = rule["criteria"]["allOf"]
    assert condition["query"] == 'AppMetrics | where Name == "workspace.ingest.lag" and Max > 300'
    assert rule["description"] == "Telemetry waits for over five minutes before it is converted or archived."


def test_alerts_of_a_verification_do_not_resolve_themselves() -> None:
    """A person resolves the alerts of a verification, because verifications count a chain only once a night."""
    rules = evaluate_situation("prod").list_resources("Microsoft.Insights/scheduledQueryRules")
    mitigated = {each.name: each.body["properties"]["autoMitigate"] for each in rules}
    unresolved = {name for name, resolves in mitigated.items() if not resolves}
    assert unresolved == {"chain-broken-westeurope", "verification-fails-westeurope"}
    assert "checkpoint-fails-westeurope" in mitigated
    query = find_only_resource(
        evaluate_situation("prod"), "Microsoft.Insights/scheduledQueryRules", "chain-broken"
    ).body["properties"]["criteria"]["allOf"][0]["query"]
    # A failing checkpoint is repeated every 15 seconds, and would send an e-mail in every window.
    assert "workspace.checkpoint.failures" not in query


@pytest.mark.parametrize(
    ("name", "host"), [("prod", ""), ("failed over", ""), ("everything", "plant.example"), ("azd", "")]
)
def test_a_service_that_does_not_answer_raises_an_alert(name: str, host: str) -> None:
    """Azure calls the readiness of the service at its public address, and a failure in two places raises an alert."""
    deployed = evaluate_situation(name)
    probe = find_only_resource(deployed, "Microsoft.Insights/webtests")
    insights = find_only_resource(deployed, "Microsoft.Insights/components")
    app = find_only_resource(deployed, "Microsoft.Web/sites").name
    assert probe.body["properties"]["Request"]["RequestUrl"] == f"https://{host or f'{app}.azurewebsites.net'}/readyz"
    assert probe.body["properties"]["SyntheticMonitorId"] == probe.name
    assert probe.location == insights.location
    assert f"hidden-link:{insights.id}" in probe.body["tags"]
    alert = find_only_resource(deployed, "Microsoft.Insights/metricAlerts", "not-ready").body["properties"]
    assert set(alert["scopes"]) == {probe.id, insights.id}
    assert (alert["criteria"]["webTestId"], alert["criteria"]["componentId"]) == (probe.id, insights.id)
    assert alert["criteria"]["failedLocationCount"] < len(probe.body["properties"]["Locations"])
    assert alert["actions"] == [{"actionGroupId": find_only_resource(deployed, "Microsoft.Insights/actionGroups").id}]


def count_rows_for_alert(name: str, rows: Sequence[tuple[str, float, Mapping[str, str]]]) -> int:
    """Return the number of rows that the query of an alert finds among metrics: name, sum and attributes."""
    rule = find_only_resource(evaluate_situation("prod"), RULE, name).body["properties"]
    connection = duckdb_kql.connect()
    connection.sql("CREATE TABLE AppMetrics (Name VARCHAR, Sum DOUBLE, Properties JSON)")
    for metric, total, attributes in rows:
        connection.execute("INSERT INTO AppMetrics VALUES (?, ?, ?)", [metric, total, json.dumps(attributes)])
    return len(duckdb_kql.query(connection, rule["criteria"]["allOf"][0]["query"]).fetchall())


@pytest.mark.parametrize(("runs", "expected"), [(0, 1), (1, 0)])
def test_a_job_that_only_fails_raises_an_alert(runs: int, expected: int) -> None:
    """An alert fires if a job failed and did not complete, however rarely it is due, although other jobs complete."""
    completed, failed = "workspace.background.runs", "workspace.background.failures"
    rows = [(completed, 40.0, {"job": "checkpoints"}), (failed, 1.0, {"job": "checkpoints"})]
    rows += [(completed, 1.0, {"job": "compaction"})] * runs + [(failed, 1.0, {"job": "compaction"})]
    assert count_rows_for_alert("job-fails", rows) == expected
    rule = find_only_resource(evaluate_situation("prod"), RULE, "job-fails").body["properties"]
    assert rule["criteria"]["allOf"][0]["threshold"] == 0
    assert {name for name in INSTRUMENTS if "background" in name.split(".")} == {completed, failed}
    # Two runs of an hourly job.
    assert rule["windowSize"] == rule["evaluationFrequency"] == "PT2H"


@pytest.mark.parametrize(("cause", "expected"), [("error", 1), ("outage", 0)])
def test_a_verification_that_ends_with_an_error_raises_an_alert(cause: str, expected: int) -> None:
    """One verification that ends with an error raises an alert, because it is repeated only the next night."""
    failure = ("workspace.chain.verify.failures", 1.0, {"target": "DomainEvents", "cause": cause})
    assert count_rows_for_alert("verification-fails", [failure]) == expected
    rule = find_only_resource(evaluate_situation("prod"), RULE, "verification-fails").body["properties"]
    assert rule["criteria"]["allOf"][0]["threshold"] == 0


def test_stopped_background_jobs_raise_an_alert() -> None:
    """An alert fires if no background job has completed, also if the app does not run and logs nothing."""
    rule = find_only_resource(evaluate_situation("prod"), RULE, "background-stopped").body["properties"]
    [condition] = rule["criteria"]["allOf"]
    assert condition["query"].endswith('== "workspace.background.runs" | summarize Runs = count() | where Runs == 0')
    assert (condition["operator"], condition["threshold"]) == ("GreaterThan", 0)


@pytest.mark.parametrize(("name", "days"), [("dev", 1), ("test", 1), ("azd", 1), ("prod", 30)])
def test_deleted_blobs_can_be_restored(name: str, days: int) -> None:
    """Deleted blobs can be restored for 30 days in production, and for the minimum of one day elsewhere."""
    blobs = find_only_resource(evaluate_situation(name), f"{STORAGE}/blobServices", "stdata").body["properties"]
    assert blobs["deleteRetentionPolicy"] == {"enabled": True, "days": days}
    assert blobs["containerDeleteRetentionPolicy"] == {"enabled": True, "days": 30}


def test_requests_for_data_are_logged_only_on_demand() -> None:
    """Requests for items and writes of blobs are logged only if the parameter is set, because Azure bills each row."""
    for is_logged in (True, False):
        deployment = evaluate_deployment(BICEP / "prod.bicepparam", ENVIRONMENT, {"logDataRequests": is_logged})
        logged = {
            log["category"]: log["enabled"]
            for each in deployment.list_resources("Microsoft.Insights/diagnosticSettings")
            for log in each.body["properties"].get("logs", [])
        }
        assert logged["DataPlaneRequests"] is logged["StorageWrite"] is is_logged
        assert logged["ControlPlaneRequests"] is logged["StorageDelete"] is True


def list_file_origins(name: str) -> list[str]:
    """Return the origins of web pages that may upload files to the data storage of a situation."""
    blobs = find_only_resource(evaluate_situation(name), f"{STORAGE}/blobServices", "stdata")
    [rule] = blobs.body["properties"]["cors"]["corsRules"]
    assert "PUT" in rule["allowedMethods"]
    origins: list[str] = rule["allowedOrigins"]
    return origins


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_the_console_can_upload_files_to_the_storage_account(name: str) -> None:
    """The storage account accepts uploads from the app's web console."""
    app = find_only_resource(evaluate_situation(name), "Microsoft.Web/sites").name
    assert list_file_origins(name)[0] == f"https://{app}.azurewebsites.net"


def test_the_console_behind_a_gateway_can_upload_files() -> None:
    """With a gateway, the storage account accepts uploads from the gateway's address only."""
    assert list_file_origins("everything") == ["https://plant.example"]


def test_the_console_can_upload_files_after_a_failover() -> None:
    """The storage account accepts the app of each region beforehand, because a failover does not write to it."""
    apps = [
        find_only_resource(evaluate_situation(name), "Microsoft.Web/sites").name for name in ("prod", "failed over")
    ]
    assert list_file_origins("prod") == [f"https://{app}.azurewebsites.net" for app in apps]


def _read_scale(name: str) -> dict[str, Any]:
    config = find_only_resource(evaluate_situation(name), "Microsoft.Web/sites").body["properties"]["functionAppConfig"]
    scale: dict[str, Any] = config["scaleAndConcurrency"]
    return scale
