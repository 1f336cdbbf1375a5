"""Tests that the security scan of the templates covers every resource."""

import json

from scripts import bicep_scan


def test_scanned_deployments_contain_every_declared_resource() -> None:
    """The scanned deployments together contain every resource that a template declares."""
    assert bicep_scan.find_resources_in_no_deployment(bicep_scan.evaluate_templates_to_deployments()) == set()


def test_a_resource_that_no_scanned_deployment_creates_is_reported() -> None:
    """A resource that no scanned deployment creates is reported."""
    created = {
        name: each for name, each in bicep_scan.evaluate_templates_to_deployments().items() if name != "failed-over"
    }
    assert bicep_scan.find_resources_in_no_deployment(created) == {"main.networkGroup"}


def test_scanned_json_contains_texts_for_values_known_at_run_time() -> None:
    """The scanned JSON has a text in place of each value that is known only at run time."""
    arm = bicep_scan.to_arm_template(bicep_scan.evaluate_templates_to_deployments()["everything"])
    assert "known at run time" in json.dumps(arm)
    names = [(each["type"], each["name"]) for each in arm["resources"]]
    assert len(names) == len(set(names))
