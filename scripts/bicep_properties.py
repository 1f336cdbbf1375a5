"""Compares the properties in the Bicep templates with Azure's management SDKs, made from the same definitions.

``python scripts/bicep_properties.py SITE_PACKAGES``: exit code 1 where a template uses a name that no model has.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.infra.templates import Templates  # noqa: E402  the path comes first

PACKAGES = {
    "Microsoft.Devices": "iothub",
    "Microsoft.DocumentDB": "cosmosdb",
    "Microsoft.EventHub": "eventhub",
    "Microsoft.KeyVault": "keyvault",
    "Microsoft.Kusto": "kusto",
    "Microsoft.Network": "network",
    "Microsoft.SignalRService": "webpubsub",
    "Microsoft.Storage": "storage",
    "Microsoft.Web": "web",
}
"""The SDK of each provider; the others' properties are few."""
ELSEWHERE = {"registrationEnabled"}
"""Of private DNS zones, which have an SDK of their own."""
_NAMES = (
    re.compile(r'"key":\s*"([^"]+)"'),
    re.compile(r'rest_field\(\s*name="([^"]+)"'),
    re.compile(r"^    ([a-z]\w*): [^=\n]+ = rest_field", re.MULTILINE),
)
_EXPRESSION = {"operator", "function"}


def unknown(packages: Path) -> Iterator[str]:
    """Give each name that a template uses and its provider does not have."""
    for template in Templates().all:
        for symbol, kind, body in template.resources():
            package = PACKAGES.get(kind.partition("/")[0])
            if package is not None:
                missing = set(_used(body.get("properties"))) - _names(packages / "azure" / "mgmt" / package) - ELSEWHERE
                yield from (
                    f"{template.path.name}: {symbol} ({kind}) has no property {name}" for name in sorted(missing)
                )


@cache
def _names(folder: Path) -> frozenset[str]:
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    found = {name for text in texts for pattern in _NAMES for name in pattern.findall(text)}
    if not found:
        raise FileNotFoundError(folder)
    return frozenset(part.replace("\\", "") for name in found for part in name.split("."))


def _used(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _used(each)
    elif isinstance(value, dict) and not value.keys() & _EXPRESSION:
        inner = value["config"] if "loop_type" in value else value
        for name, each in inner.items():
            yield name
            yield from _used(each)


if __name__ == "__main__":
    FAULTS = list(unknown(Path(sys.argv[1])))
    sys.stdout.writelines(f"{fault}\n" for fault in FAULTS)
    sys.exit(1 if FAULTS else 0)
