"""Fixtures with services over embedded stores and over Azure stores."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from shared.backends.azure.blobs import BlobAccount
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.settings import Settings
from shared.wiring import Services

type Choice = Callable[[Callable[[Services], object]], tuple[str, str]]
"""Function that returns the class names of a service, locally and on Azure."""

_UNREACHABLE = "http://127.0.0.1:9"
_BLOBS = f"DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;BlobEndpoint={_UNREACHABLE}/a;"


@pytest.fixture
async def local_services(tmp_path: Path) -> AsyncIterator[Services]:
    """Provide services with embedded stores in an empty folder."""
    services = Services(Settings.read({"DATA_DIR": str(tmp_path)}))
    yield services
    await services.close()


@pytest.fixture
async def azure_services() -> AsyncIterator[Services]:
    """Provide services with Azure stores that cannot be reached."""
    services = Services(Settings.read({"STORES": "azure", "KUSTO_URI": _UNREACHABLE}))
    backends = services.backends
    backends.cosmos = backends.register_for_closing(CosmosAccount(_UNREACHABLE, "workspace", key="a2V5"))
    backends.blob_account = backends.register_for_closing(BlobAccount("", connection_string=_BLOBS, retries=0))
    yield services
    await services.close()


@pytest.fixture
def find_store_classes(local_services: Services, azure_services: Services) -> Choice:
    """Return a function that returns the class names of a store: of the local one and of the one on Azure."""

    def find_class_names(get: Callable[[Services], object]) -> tuple[str, str]:
        found, other = get(local_services), get(azure_services)
        assert get(local_services) is found, "a second access returned another object"
        return type(found).__name__, type(other).__name__

    return find_class_names
