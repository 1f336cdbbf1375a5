"""Tests of the catalog's store and of the workspace id."""

import pytest

from shared.catalog.document import load_document
from shared.errors import WorkspaceError
from shared.wiring import Services
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_the_catalog_store(find_store_classes: Choice) -> None:
    """The setting STORES selects the store of the catalog, of the same kind as the other stores."""
    assert find_store_classes(lambda services: services.catalog.store) == ("SqliteCatalogStore", "CosmosCatalogStore")


async def test_a_workspace_without_a_document_has_no_id(local_services: Services) -> None:
    """Without a workspace document there is no workspace id, so that no audit record can be written."""
    with pytest.raises(WorkspaceError) as raised:
        await local_services.catalog.load_workspace_id()
    assert raised.value.code == "WORKSPACE_NOT_DECLARED"
    await local_services.provenance.catalog_service.apply(load_document(PLANT, "test"), "apply")
    assert await local_services.catalog.load_workspace_id() == "plant-a"


async def test_a_just_enabled_provenance_is_known_to_other_instances(local_services: Services) -> None:
    """A workspace is audited as soon as a document with provenance is stored, although a catalog is still cached."""
    other = Services(local_services.settings)
    assert not await other.catalog.is_workspace_audited()
    await local_services.provenance.catalog_service.apply(load_document(PLANT, "test"), "apply")
    assert await other.catalog.is_workspace_audited()
    await other.close()
