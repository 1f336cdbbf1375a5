"""Check that Azure defines every property that the Bicep templates set.

The script reads the names of the properties from Azure's management SDKs, which are generated from Azure's API
definitions, or from pulumi-azure-native if there is no SDK for a resource provider. Run ``python
scripts/bicep_properties.py SITE_PACKAGES``; the exit code is 1 if a template sets an unknown property.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.infra.bicep_syntax import Literal, Object  # noqa: E402  the path comes first
from tests.infra.templates import Templates, get_property  # noqa: E402  the path comes first

FOLDERS = {
    "Microsoft.Authorization": ["pulumi_azure_native/authorization"],
    "Microsoft.Devices": ["azure/mgmt/iothub"],
    "Microsoft.DocumentDB": ["azure/mgmt/cosmosdb"],
    "Microsoft.EventHub": ["azure/mgmt/eventhub"],
    "Microsoft.Insights": ["pulumi_azure_native/monitor", "pulumi_azure_native/applicationinsights"],
    "Microsoft.KeyVault": ["azure/mgmt/keyvault"],
    "Microsoft.Kusto": ["azure/mgmt/kusto"],
    "Microsoft.ManagedIdentity": ["pulumi_azure_native/managedidentity"],
    "Microsoft.Network": ["azure/mgmt/network", "pulumi_azure_native/privatedns"],
    "Microsoft.OperationalInsights": ["pulumi_azure_native/operationalinsights"],
    "Microsoft.Resources": ["pulumi_azure_native/resources"],
    "Microsoft.SignalRService": ["azure/mgmt/webpubsub"],
    "Microsoft.Storage": ["azure/mgmt/storage"],
    "Microsoft.Web": ["azure/mgmt/web"],
}
"""Folders of modules that define the properties of each resource provider; a provider without entry is an error."""
DIFFERENT_SPELLINGS = {"Application_Type", "WorkspaceResourceId", "DisableLocalAuth", "odata.type"}
"""Properties with a capital or a dot in their Resource Manager name, which Pulumi spells differently."""
CAPITALISED = {"Microsoft.Insights/webtests"}
"""Types whose properties begin with a capital in Resource Manager; Pulumi spells them with a small letter."""
_NAMES = (
    re.compile(r'"key":\s*"([^"]+)"'),
    re.compile(r'rest_field\(\s*name="([^"]+)"'),
    re.compile(r"^    ([a-z]\w*): [^=\n]+ = rest_field", re.MULTILINE),
    re.compile(r'@pulumi\.getter\(name="(\w+)"\)'),
    re.compile(r"@pulumi\.getter\n    def (\w+)\("),
)


def iterate_errors_about_unknown_properties(packages_folder: Path) -> Iterator[str]:
    """Yield an error message for each property that a template sets but that Azure does not define."""
    for template in Templates().all:
        for symbol, kind, body in template.iterate_resources():
            known = _read_property_names(packages_folder, kind.partition("/")[0]) | DIFFERENT_SPELLINGS
            if kind.partition("@")[0] in CAPITALISED:
                known |= {name[0].upper() + name[1:] for name in known}
            missing = set(template.iterate_property_names(_keep_only_properties_member(body))) - known
            yield from (f"{template.path.name}: {symbol} ({kind}) has no property {name}" for name in sorted(missing))


def _keep_only_properties_member(body: Object) -> Object:
    """Return the body of a resource without its members other than ``properties``, which is added if missing."""
    found = (
        get_property(body, "properties") if any(key == Literal("properties") for key, _ in body.members) else Object(())
    )
    return Object(((Literal("properties"), found),))


@cache
def _read_property_names(packages_folder: Path, resource_provider: str) -> frozenset[str]:
    """Return the names of all properties that the definitions of a resource provider contain."""
    if resource_provider not in FOLDERS:
        raise KeyError(f"the definitions of {resource_provider} are unknown: add them to FOLDERS")
    paths = [path for folder in FOLDERS[resource_provider] for path in (packages_folder / folder).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    found = {name for text in texts for pattern in _NAMES for name in pattern.findall(text)}
    if not found:
        raise FileNotFoundError(packages_folder / FOLDERS[resource_provider][0])
    return frozenset(part.replace("\\", "") for name in found for part in name.split(".")) | {"properties"}


if __name__ == "__main__":
    FAULTS = list(iterate_errors_about_unknown_properties(Path(sys.argv[1])))
    sys.stdout.writelines(f"{fault}\n" for fault in FAULTS)
    sys.stdout.write(
        f"compared the properties of {sum(1 for each in Templates().all for _ in each.iterate_resources())} resources\n"
    )
    sys.exit(1 if FAULTS else 0)
