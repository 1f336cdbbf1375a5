"""Tests of the optional features of a workspace."""

import pytest

from shared.catalog.document import load_document
from shared.errors import WorkspaceError
from shared.wiring import Services
from shared.wiring.features import PROVENANCE
from tests.unit.shared.catalog.documents import PLANT


async def test_operations_on_the_audit_log_need_declared_provenance(local_services: Services) -> None:
    """If the workspace document does not declare provenance, operations on the audit log fail with one error."""
    assert not await local_services.features.has_feature(PROVENANCE)
    with pytest.raises(WorkspaceError) as raised:
        await local_services.features.require_feature(PROVENANCE)
    assert raised.value.code == "PROVENANCE_NOT_PROVISIONED"
    await local_services.provenance.catalog_service.apply(load_document(PLANT, "test"), "apply")
    assert await local_services.features.has_feature(PROVENANCE)
    await local_services.features.require_feature(PROVENANCE)


async def test_an_unknown_feature_is_never_declared(local_services: Services) -> None:
    """A feature with an unknown name counts as not declared, so that a misspelt name disables the operation."""
    assert not await local_services.features.has_feature("provenence")
