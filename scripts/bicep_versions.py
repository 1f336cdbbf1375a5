"""Check that Azure has published the API version of each resource in the Bicep templates.

The versions are read from pulumi-azure-native, which is generated from Azure/azure-rest-api-specs. Run ``python
scripts/bicep_versions.py SITE_PACKAGES``; the exit code is 1 if a resource type or version is unknown.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.infra.templates import Templates  # noqa: E402  the path comes first

MODULES = {
    "Microsoft.Authorization/locks": "authorization/management_lock_by_scope",
    "Microsoft.Authorization/roleAssignments": "authorization/role_assignment",
    "Microsoft.Devices/IotHubs": "iothub/iot_hub_resource",
    "Microsoft.DocumentDB/databaseAccounts": "cosmosdb/database_account",
    "Microsoft.DocumentDB/databaseAccounts/sqlDatabases": "cosmosdb/sql_resource_sql_database",
    "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers": "cosmosdb/sql_resource_sql_container",
    "Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments": "cosmosdb/sql_resource_sql_role_assignment",
    "Microsoft.EventHub/namespaces": "eventhub/namespace",
    "Microsoft.EventHub/namespaces/eventhubs": "eventhub/event_hub",
    "Microsoft.EventHub/namespaces/eventhubs/consumergroups": "eventhub/consumer_group",
    "Microsoft.EventHub/namespaces/networkRuleSets": "eventhub/namespace_network_rule_set",
    "Microsoft.Insights/actionGroups": "monitor/action_group",
    "Microsoft.Insights/components": "applicationinsights/component",
    "Microsoft.Insights/diagnosticSettings": "monitor/diagnostic_setting",
    "Microsoft.Insights/metricAlerts": "monitor/metric_alert",
    "Microsoft.Insights/scheduledQueryRules": "monitor/scheduled_query_rule",
    "Microsoft.Insights/webtests": "applicationinsights/web_test",
    "Microsoft.KeyVault/vaults": "keyvault/vault",
    "Microsoft.KeyVault/vaults/keys": "keyvault/key",
    "Microsoft.Kusto/clusters": "kusto/cluster",
    "Microsoft.Kusto/clusters/databases": "kusto/read_write_database",
    "Microsoft.Kusto/clusters/databases/dataConnections": "kusto/event_hub_data_connection",
    "Microsoft.Kusto/clusters/databases/principalAssignments": "kusto/database_principal_assignment",
    "Microsoft.Kusto/clusters/databases/scripts": "kusto/script",
    "Microsoft.Kusto/clusters/managedPrivateEndpoints": "kusto/managed_private_endpoint",
    "Microsoft.ManagedIdentity/userAssignedIdentities": "managedidentity/user_assigned_identity",
    "Microsoft.Network/applicationGateways": "network/application_gateway",
    "Microsoft.Network/natGateways": "network/nat_gateway",
    "Microsoft.Network/networkSecurityGroups": "network/network_security_group",
    "Microsoft.Network/privateDnsZones": "privatedns/private_zone",
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks": "privatedns/virtual_network_link",
    "Microsoft.Network/privateEndpoints": "network/private_endpoint",
    "Microsoft.Network/privateEndpoints/privateDnsZoneGroups": "network/private_dns_zone_group",
    "Microsoft.Network/publicIPAddresses": "network/public_ip_address",
    "Microsoft.Network/virtualNetworks": "network/virtual_network",
    "Microsoft.OperationalInsights/workspaces": "operationalinsights/workspace",
    "Microsoft.Resources/resourceGroups": "resources/resource_group",
    "Microsoft.SignalRService/webPubSub": "webpubsub/web_pub_sub",
    "Microsoft.SignalRService/webPubSub/hubs": "webpubsub/web_pub_sub_hub",
    "Microsoft.Storage/storageAccounts": "storage/storage_account",
    "Microsoft.Storage/storageAccounts/blobServices": "storage/blob_service_properties",
    "Microsoft.Storage/storageAccounts/blobServices/containers": "storage/blob_container",
    "Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies": (
        "storage/blob_container_immutability_policy"
    ),
    "Microsoft.Storage/storageAccounts/managementPolicies": "storage/management_policy",
    "Microsoft.Web/serverfarms": "web/app_service_plan",
    "Microsoft.Web/sites": "web/web_app",
    "Microsoft.Web/sites/basicPublishingCredentialsPolicies": "web/web_app_scm_allowed",
    "Microsoft.Web/sites/config": "web/web_app_application_settings",
}
"""Module of pulumi-azure-native for each resource type."""

_VERSION = re.compile(r":[a-z]+/v(\d{4})(\d{2})(\d{2})(preview)?:")


def iterate_errors_about_unknown_versions(packages_folder: Path) -> Iterator[str]:
    """Yield an error message for each resource in a template whose API version Azure never published."""
    for template in Templates().all:
        for each in template.file.find_declarations("resource").values():
            kind, _, version = each.target.partition("@")
            if version not in read_published_api_versions(packages_folder, kind):
                yield f"{template.path.name}: {kind} has no API version {version}"


def read_published_api_versions(packages_folder: Path, resource_type: str) -> set[str]:
    """Return the published API versions of a resource type; an empty set for a type that is not in ``MODULES``."""
    if resource_type not in MODULES:
        return set()
    text = (packages_folder / "pulumi_azure_native" / f"{MODULES[resource_type]}.py").read_text(encoding="utf-8")
    return {f"{year}-{month}-{day}{preview and '-preview'}" for year, month, day, preview in _VERSION.findall(text)}


if __name__ == "__main__":
    FAULTS = list(iterate_errors_about_unknown_versions(Path(sys.argv[1])))
    sys.stdout.writelines(f"{fault}\n" for fault in FAULTS)
    sys.exit(1 if FAULTS else 0)
