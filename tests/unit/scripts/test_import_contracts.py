"""Tests of the import contract for packages below ``azure``."""

import pytest

from scripts.import_contracts import is_import_allowed

ALLOWED = ["azure.functions", "azure.durable_functions"]


@pytest.mark.parametrize(
    "statement",
    [
        "import azure.functions as func",
        "from azure import functions",
        "from azure.functions.eventhub import EventHubTriggerConverter",
        "    import azure.durable_functions as df",
    ],
)
def test_the_programming_model_may_be_imported(statement: str) -> None:
    """The Azure Functions programming model may be imported by any form of import statement."""
    assert is_import_allowed(statement, ALLOWED)


@pytest.mark.parametrize(
    "statement",
    [
        "import azure.cosmos",
        "from azure.cosmos.aio import CosmosClient",
        "from azure import identity",
        "import azure",
        "import azure.functionsother",
        "from azure.storage import blob",
    ],
)
def test_imports_of_other_azure_packages_are_rejected(statement: str) -> None:
    """Imports of packages below ``azure`` are rejected, except the Azure Functions programming model."""
    assert not is_import_allowed(statement, ALLOWED)
