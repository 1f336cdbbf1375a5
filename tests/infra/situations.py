"""Named situations in which the tests evaluate the templates: combinations of size, variables and parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.infra.bicep_model import Deployment, evaluate_deployment
from tests.infra.templates import BICEP

ENVIRONMENT = {
    "AZURE_LOCATION": "westeurope",
    "AZURE_PRINCIPAL_ID": "22222222-2222-2222-2222-222222222222",
    "WEB_PUBSUB_AUDIENCE": "11111111-1111-1111-1111-111111111111",
    "ALERT_EMAILS": "operators@plant.example, night@plant.example",
}
"""The variables that a deployment sets; only the last three lack a default in some size."""

EVERYTHING: Mapping[str, Any] = {
    "ownHubs": [{"hub": "line-7", "consumerGroup": "idw"}],
    "withIotHub": True,
    "gatewayHostName": "plant.example",
    "gatewayCertificateSecretUri": "https://certificates.vault.azure.net/secrets/plant",
    "gatewayIdentityId": "/subscriptions/x/providers/Microsoft.ManagedIdentity/userAssignedIdentities/z",
    "dataStoreAccounts": [{"lookup": "mes", "accountId": "/subscriptions/x"}],
}
"""Parameters that switch on every optional part."""


@dataclass(frozen=True)
class Situation:
    """Situation in which tests evaluate the templates: size, variables and parameters of a deployment.

    Attributes:
        size: name of the parameter file.
        environment: variables in addition to ``ENVIRONMENT``.
        overrides: parameters that replace those of the file.
    """

    size: str
    environment: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)


SITUATIONS: Mapping[str, Situation] = {
    "dev": Situation("dev"),
    "test": Situation("test"),
    "azd": Situation("main"),
    "prod": Situation("prod"),
    "locked": Situation("prod", {"CHECKPOINTS_LOCKED": "true"}),
    "failed over": Situation(
        "prod",
        {
            "AZURE_ACTIVE_LOCATION": "North Europe",
            "CHECKPOINTS_LOCKED": "true",
            "EXISTING_VAULT_NAME": "kv-prod-home",
            "EXISTING_DATA_STORAGE_NAME": "stdataprodhome",
        },
    ),
    "restored": Situation("prod", {"COSMOS_NAME": "cosmos-restored", "COSMOS_READ_REGIONS": "none"}),
    "bounded staleness": Situation("prod", {"COSMOS_CONSISTENCY": "BoundedStaleness"}),
    "other home": Situation("prod", {"AZURE_LOCATION": "northeurope"}),
    "everything": Situation("prod", overrides=EVERYTHING),
    "everything failed over": Situation("prod", {"AZURE_ACTIVE_LOCATION": "northeurope"}, EVERYTHING),
    "existing Data Explorer": Situation("main", {"EXISTING_KUSTO_URI": "https://plant.westeurope.kusto.windows.net"}),
}


@cache
def evaluate_situation(name: str) -> Deployment:
    """Evaluate the templates for a named situation and return the deployment."""
    situation = SITUATIONS[name]
    file = BICEP / f"{situation.size}.bicepparam"
    return evaluate_deployment(file, {**ENVIRONMENT, **situation.environment}, situation.overrides)
