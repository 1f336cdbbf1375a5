"""Tests of Blob Storage links, which are signed with a user delegation key instead of an account key."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.storage.blob import UserDelegationKey
from azure.storage.blob.aio import BlobServiceClient

from shared.backends.azure.blobs import AzureBlobStore, BlobAccount
from shared.timestamps import now
from tests.virtual_time import VirtualTime

SECRET = base64.b64encode(b"the key that the account hands out").decode()
SIGNED = [
    "sp",
    "st",
    "se",
    "RESOURCE",
    "skoid",
    "sktid",
    "skt",
    "ske",
    "sks",
    "skv",
    "saoid",
    "suoid",
    "scid",
    "skdutid",
    "sduoid",
    "sip",
    "spr",
    "sv",
    "sr",
    "snapshot",
    "ses",
    "srh",
    "srq",
    "rscc",
    "rscd",
    "rsce",
    "rscl",
    "rsct",
]
"""What is signed, in this order, by the storage services' reference (Create a user delegation SAS); parameters that a
link does not have are empty."""


class Account(BlobAccount):
    """Fake Blob Storage account that creates delegation keys locally, because Azure gives them only to an identity."""

    def __init__(self) -> None:
        self.time = VirtualTime(now())
        super().__init__("https://plant.blob.core.windows.net", runtime=self.time.runtime)
        self.asked: list[tuple[datetime, datetime]] = []
        self._client = BlobServiceClient("https://plant.blob.core.windows.net")
        vars(self._client)["get_user_delegation_key"] = self._return_key

    async def _return_key(self, begins: datetime, ends: datetime) -> UserDelegationKey:
        self.asked.append((begins, ends))
        key = UserDelegationKey()
        key.signed_oid, key.signed_tid = "the-identity", "the-tenant"
        key.signed_start, key.signed_expiry = f"{begins:%Y-%m-%dT%H:%M:%SZ}", f"{ends:%Y-%m-%dT%H:%M:%SZ}"
        key.signed_service, key.signed_version, key.value = "b", "2025-01-05", SECRET
        return key


@pytest.fixture
async def blob_account() -> AsyncIterator[Account]:
    """Provide a Blob Storage account with a local client, which is closed after the test."""
    made = Account()
    yield made
    await made.close()


async def test_a_link_is_signed_with_a_delegation_key(blob_account: Account) -> None:
    """A link allows reading one blob until its expiry, names its signer, and has a valid signature."""
    ends = (now() + timedelta(minutes=15)).replace(microsecond=0)
    link = urlsplit(await AzureBlobStore(blob_account, "downloads").create_download_link("a/b c.csv", "rig.csv", ends))
    given = {name: values[0] for name, values in parse_qs(link.query).items()}
    assert (link.hostname, link.path) == ("plant.blob.core.windows.net", "/downloads/a/b%20c.csv")
    assert (given["sp"], given["sr"], given["se"]) == ("r", "b", f"{ends:%Y-%m-%dT%H:%M:%SZ}")
    assert given["spr"] == "https"
    assert (given["skoid"], given["sktid"]) == ("the-identity", "the-tenant")
    assert given["rscd"].startswith("attachment")
    signature = given.pop("sig")
    text = "\n".join(given.get(name, "") for name in SIGNED)
    text = text.replace(f"{given['se']}\n\n", f"{given['se']}\n/blob/plant/downloads/a/b c.csv\n", 1)
    expected = hmac.new(base64.b64decode(SECRET), text.encode(), hashlib.sha256).digest()
    assert signature == base64.b64encode(expected).decode()
    assert set(given) <= set(SIGNED)
    assert SECRET not in link.query


async def test_one_delegation_key_signs_many_links(blob_account: Account) -> None:
    """A delegation key signs several links, but none that expires later than the key."""
    store, ends = AzureBlobStore(blob_account, "downloads"), now() + timedelta(minutes=15)
    for name in ("a", "b"):
        await store.create_download_link(name, name, ends)
    assert len(blob_account.asked) == 1
    await store.create_download_link("c", "c", ends + timedelta(days=3))
    (begins, until), (_, again) = blob_account.asked
    assert begins < now()
    assert until > ends
    assert again == ends + timedelta(days=3)
    assert begins.tzinfo is UTC


async def test_a_delegation_key_signs_links_for_15_minutes(blob_account: Account) -> None:
    """A key signs links for at most 15 minutes, because an operator can have revoked it."""
    store = AzureBlobStore(blob_account, "downloads")
    for minutes_later, requests in ((0, 1), (15, 1), (1, 2), (15, 2)):
        blob_account.time.advance(minutes_later * 60)
        await store.create_upload_link("a", blob_account.time.now + timedelta(hours=24))
        assert len(blob_account.asked) == requests
