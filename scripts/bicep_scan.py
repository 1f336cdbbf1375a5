"""Scan the resources that the Bicep templates create with checkov, a tool that finds insecure settings.

checkov's own Bicep parser silently skips many constructs. Therefore this script evaluates the templates itself, with
several sets of parameters that together create every resource, and passes the resources to checkov as JSON. Run
``python scripts/bicep_scan.py CHECKOV``; the exit code is 1 if a check fails, or if checkov did not read a resource.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.infra.bicep_model import UNKNOWN, Deployment, deploy_template  # noqa: E402  the path comes first
from tests.infra.situations import evaluate_situation  # noqa: E402  the path comes first
from tests.infra.templates import BICEP, Templates  # noqa: E402  the path comes first

type ExitCode = int
SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"


def evaluate_templates_to_deployments() -> dict[str, Deployment]:
    """Evaluate the Bicep templates with each set of parameters; return the resulting deployments by name of the set."""
    hub = {"serviceName": "live", "appUrl": "https://plant.example", "audience": "plant"}
    return {
        "everything": evaluate_situation("everything"),
        "failed-over": evaluate_situation("everything failed over"),
        "live-stream": deploy_template(BICEP / "live-stream.bicep", hub),
    }


def find_resources_in_no_deployment(deployments: dict[str, Deployment]) -> set[str]:
    """Return the resources that the templates define but that no deployment creates, as ``file.symbol``."""
    declared = {f"{each.path.stem}.{symbol}" for each in Templates().all for symbol, _, _ in each.iterate_resources()}
    return declared - {resource.path for each in deployments.values() for resource in each.resources}


def to_arm_template(deployment: Deployment) -> dict[str, Any]:
    """Convert the resources of a deployment to a template of Azure Resource Manager, which checkov can read."""
    return {"$schema": SCHEMA, "contentVersion": "1.0.0.0", "resources": list(_to_arm_resources(deployment))}


def _to_arm_resources(deployment: Deployment) -> Iterator[dict[str, Any]]:
    for index, each in enumerate(deployment.resources):
        # Many extension resources share a name, and checkov would count them as one.
        name = f"{each.name}-{index}" if each.type.startswith(("Microsoft.Insights", "Microsoft.Auth")) else each.name
        yield _replace_unknown_values(each.body) | {"type": each.type, "apiVersion": each.version, "name": name}


def _replace_unknown_values(value: Any) -> Any:
    """Return a JSON value in which a text replaces each value that only the deployment determines (``UNKNOWN``)."""
    if value is UNKNOWN:
        return "known at run time"
    if isinstance(value, dict):
        return {key: _replace_unknown_values(each) for key, each in value.items()}
    return [_replace_unknown_values(each) for each in value] if isinstance(value, list) else value


def scan_deployments(checkov_path: str) -> ExitCode:
    """Scan all deployments with checkov, print the result and return the exit code."""
    created = evaluate_templates_to_deployments()
    written = sum(len(each.resources) for each in created.values())
    with tempfile.TemporaryDirectory() as folder:
        for name, each in created.items():
            (Path(folder) / f"{name}.json").write_text(json.dumps(to_arm_template(each), indent=1), encoding="utf-8")
        command = [checkov_path, "--config-file", str(ROOT / "infra" / ".checkov.yaml"), "--directory", folder]
        command += ["--output", "json"]
        reply = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603  the Makefile's scanner
    result = json.loads(reply.stdout)
    summary = result["summary"]
    faults = [f"no scanned deployment creates {each}" for each in sorted(find_resources_in_no_deployment(created))]
    failed = result.get("results", {}).get("failed_checks", [])
    faults += [f"{each['check_id']} {each['check_name']}: {each['resource']}" for each in failed]
    if summary["parsing_errors"] or summary["resource_count"] != written:
        faults.append(f"checkov read {summary['resource_count']} of {written} resources")
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    sys.stdout.write(f"checkov read {summary['resource_count']} resources of {len(created)} deployments; ")
    sys.stdout.write(f"{summary['passed']} checks passed, {summary['failed']} failed\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(scan_deployments(sys.argv[1]))
