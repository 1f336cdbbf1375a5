"""Tests of the API versions of resource types in the templates."""

from tests.infra.templates import Templates

OLDEST = {"Microsoft.Insights/diagnosticSettings": "2021-05-01-preview", "Microsoft.Authorization/locks": "2020-05-01"}


UNCHANGED = {
    "Microsoft.Authorization/roleAssignments": "2022-04-01",
    "Microsoft.Devices/IotHubs": "2023-06-30",
    "Microsoft.Insights/actionGroups": "2023-01-01",
    "Microsoft.Insights/components": "2020-02-02",
    "Microsoft.Insights/webtests": "2022-06-15",
    "Microsoft.SignalRService/webPubSub": "2024-03-01",
    "Microsoft.SignalRService/webPubSub/hubs": "2024-03-01",
} | OLDEST
"""The newest versions of types that have no version of the last two years."""


def test_api_versions_of_azure_resource_types_are_recent() -> None:
    """The API version of each resource type was at most two years old when it was chosen, or is the newest."""
    for template in Templates().all:
        for each in template.file.find_declarations("resource").values():
            kind, _, version = each.target.partition("@")
            assert version == UNCHANGED[kind] if kind in UNCHANGED else version >= "2024-06-01", each.target


def test_subnets_state_their_outbound_access() -> None:
    """Each subnet states its outbound access, because newer API versions have no default access."""
    network = Templates().find_template("network")
    assert network.text.count("defaultOutboundAccess: false") == 2
    assert "natGateways@" in network.text
