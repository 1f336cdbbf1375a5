"""Tests of OAuth clients, their redirect URIs, and clients that a metadata document describes."""

import asyncio
import json
from typing import Any

import pytest

from shared.errors import WorkspaceError
from shared.oauth.clients import FETCHES, FETCHES_PER_HOST, MEMBERS_AT_LIMIT, Client, FetchedClientDocuments
from shared.outbound.addresses import AddressRefusedError, OutboundUrl
from shared.outbound.ports import OutboundFailedError, OutboundReply, OutboundRequest
from tests.virtual_time import VirtualTime

DECLARED = ("https://tool.example/callback", "http://127.0.0.1/callback")


@pytest.mark.parametrize("requested", [*DECLARED, "http://127.0.0.1:49152/callback"])
def test_declared_redirect_uris_are_accepted(requested: str) -> None:
    """A redirect URI must equal a declared one; a loopback URI may have any port."""
    assert Client("tool", "Tool", DECLARED).resolve_redirect_uri(requested) == requested


@pytest.mark.parametrize(
    "requested",
    [
        None,
        "",
        "https://tool.example/callback/",
        "https://tool.example:8443/callback",
        "https://tool.example/callback?x=1",
        "https://tool.example.evil.example/callback",
        "http://127.0.0.1:49152/other",
        "http://127.0.0.1@evil.example/callback",
    ],
)
def test_undeclared_redirect_uris_are_rejected(requested: str | None) -> None:
    """A redirect URI that is not declared is rejected; a client with several must state one."""
    with pytest.raises(WorkspaceError) as failed:
        Client("tool", "Tool", DECLARED).resolve_redirect_uri(requested)
    assert failed.value.code == "REDIRECT_URI_MISMATCH"


def test_a_single_redirect_uri_may_be_omitted() -> None:
    """A client with one declared redirect URI may omit it; a client with a URL as id has a metadata document."""
    assert Client("tool", "Tool", DECLARED[:1]).resolve_redirect_uri(None) == DECLARED[0]
    assert Client("tool", "Tool", ()).is_declared_in_workspace
    assert not Client("https://tool.example/client.json", "Tool", ()).is_declared_in_workspace


URL = "https://app.example/client.json"
DOCUMENT = {"client_id": URL, "client_name": "App", "redirect_uris": ["https://app.example/cb"], "other": 1}


class FakeHttp:
    """Fake HTTP client that returns one reply or raises one error."""

    def __init__(self, **members: Any) -> None:
        self.document: Any = {**DOCUMENT, **members}
        self.status = 200
        self.headers = {"content-type": "application/json"}
        self.error: Exception | None = None
        self.requests: list[OutboundRequest] = []

    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Return the reply."""
        self.requests.append(request)
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        content = self.document if isinstance(self.document, bytes) else json.dumps(self.document).encode()
        return OutboundReply(self.status, self.headers, content)

    async def require_allowed_host(self, url: OutboundUrl, *, https_only: bool = False) -> None:
        """Accept every address."""

    async def close(self) -> None:
        """Do nothing: this fake client has no connections."""


async def load_rejected_document(http: FakeHttp, client_id: str = URL) -> str:
    """Load a client's document, check that it is rejected, and return the detail of the error."""
    with pytest.raises(WorkspaceError) as caught:
        await FetchedClientDocuments(http).load_client(client_id, "ann@t")
    assert caught.value.code == "OAUTH_CLIENT_UNKNOWN"
    return caught.value.detail


async def test_a_client_is_read_from_its_metadata_document() -> None:
    """Name and redirect URIs of a client are read from its document, within limits of time and size."""
    http = FakeHttp()
    client = await FetchedClientDocuments(http).load_client(URL, "ann@t")
    assert (client.client_id, client.name, client.redirect_uris) == (URL, "App", ("https://app.example/cb",))
    assert not client.is_declared_in_workspace
    [request] = http.requests
    assert (request.seconds, request.max_bytes, request.https_only, request.truncate) == (3.0, 5120, True, False)


@pytest.mark.parametrize(
    "members",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_id": None},
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": ["http://app.example/cb"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": [1]},
        {"redirect_uris": ["https://app.example/cb"] * 21},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"client_secret": "x"},
    ],
)
async def test_invalid_client_documents_are_rejected(members: dict[str, Any]) -> None:
    """A document is rejected if it is of another client, has no valid redirect URI, or contains a secret."""
    assert "metadata document" in await load_rejected_document(FakeHttp(**members))


async def test_wrong_replies_to_a_document_request_are_rejected() -> None:
    """A redirect, another content type, a text that is no JSON object, or a failed connection is rejected."""
    http = FakeHttp()
    http.status = 302
    assert "302" in await load_rejected_document(http)
    http = FakeHttp()
    http.headers = {"content-type": "text/html"}
    assert "Content-Type" in await load_rejected_document(http)
    for content in (b"[]", b"{", b'{"client_id": 1, "client_id": 2}', b"\xff"):
        http = FakeHttp()
        http.document = content
        await load_rejected_document(http)
    for error in (
        AddressRefusedError("The address is private."),
        OutboundFailedError("The reply is too large."),
        TimeoutError(),
    ):
        http = FakeHttp()
        http.error = error
        await load_rejected_document(http)


@pytest.mark.parametrize(
    "client_id",
    [
        *("https://app.example", "https://app.example/", "http://app.example/c", "https://u:p@app.example/c"),
        *(
            "https://app.example/a/../c",
            "https://app.example/./c",
            "https://app.example/c#x",
            "https://app.example:22/c",
        ),
    ],
)
async def test_client_documents_are_fetched_only_from_https_addresses(client_id: str) -> None:
    """Documents are fetched only from https addresses with a path and an allowed port."""
    http = FakeHttp(client_id=client_id)
    await load_rejected_document(http, client_id)
    assert http.requests == []


@pytest.mark.parametrize("name", [None, "", 1, "x" * 101, "a\u202eb", " a"])
async def test_an_unprintable_name_is_replaced(name: object) -> None:
    """If the name of a client is missing, too long or not printable, its host is used instead."""
    client = await FetchedClientDocuments(FakeHttp(client_name=name)).load_client(URL, "ann@t")
    assert client.name == "app.example"


@pytest.mark.parametrize(
    ("cache_control", "seconds"),
    [("", 300), ("max-age=1", 300), ("max-age=3600", 3600), ("max-age=999999", 86400), ("no-store", 300)],
)
async def test_client_documents_are_cached(cache_control: str, seconds: int) -> None:
    """A document is cached as long as its reply says, from 5 minutes to 24 hours."""
    time, http = VirtualTime(), FakeHttp()
    http.headers = {**http.headers, "cache-control": cache_control}
    documents = FetchedClientDocuments(http, runtime=time.runtime)
    await asyncio.gather(*(documents.load_client(URL, "ann@t") for _ in range(3)))
    time.advance(seconds - 1)
    await documents.load_client(URL, "ann@t")
    assert len(http.requests) == 1
    time.advance(2)
    await documents.load_client(URL, "ann@t")
    assert len(http.requests) == 2


async def test_failed_fetches_of_documents_are_cached_for_a_minute() -> None:
    """After a failed fetch, the next attempt is at least 60 seconds later."""
    time, http = VirtualTime(), FakeHttp()
    http.error = OutboundFailedError("No connection.")
    documents = FetchedClientDocuments(http, runtime=time.runtime)
    for _ in range(3):
        with pytest.raises(WorkspaceError):
            await documents.load_client(URL, "ann@t")
    assert len(http.requests) == 1
    http.error = None
    time.advance(61)
    assert (await documents.load_client(URL, "ann@t")).name == "App"


class LimitedFetches:
    """Metadata documents at any URL, which members fetch within the limits of each minute."""

    def __init__(self) -> None:
        self.time, self._http = VirtualTime(), FakeHttp()
        self._documents = FetchedClientDocuments(self._http, runtime=self.time.runtime)

    async def load_document(self, address: str, member_id: str = "ann@t") -> str:
        """Load the document at a URL; return the name of its client, or the code of the error."""
        self._http.document = {**DOCUMENT, "client_id": address}
        try:
            return (await self._documents.load_client(address, member_id)).name
        except WorkspaceError as error:
            return error.code


async def test_fetches_are_limited_for_each_host() -> None:
    """A member fetches at most ten documents of a host in a minute; each host has its own limit."""
    fetches = LimitedFetches()
    assert [await fetches.load_document(f"https://app.example/{number}") for number in range(11)] == ["App"] * 10 + [
        "RATE_LIMITED"
    ]
    assert await fetches.load_document("https://other.example/c") == "App"
    fetches.time.advance(61)
    assert await fetches.load_document("https://app.example/10") == "App"


async def test_a_member_at_the_limits_of_fetches_does_not_block_others() -> None:
    """A member who has used up the limits, of a host and in total, does not block the fetches of other members."""
    fetches = LimitedFetches()
    for number in range(FETCHES):
        assert await fetches.load_document(f"https://h{number // FETCHES_PER_HOST}.example/{number}") == "App"
    assert await fetches.load_document("https://other.example/c") == "RATE_LIMITED"
    assert await fetches.load_document("https://other.example/c", "bob@t") == "App"
    assert await fetches.load_document("https://h0.example/c", "bob@t") == "App"


async def test_the_fetches_of_all_members_together_are_limited() -> None:
    """Ten members at the limit of a host together use up the limit of the workspace for this host."""
    fetches = LimitedFetches()
    for number in range(FETCHES_PER_HOST * MEMBERS_AT_LIMIT):
        member_id = f"{number // FETCHES_PER_HOST}@t"
        assert await fetches.load_document(f"https://app.example/{number}", member_id) == "App"
    assert await fetches.load_document("https://app.example/c") == "RATE_LIMITED"
    assert await fetches.load_document("https://other.example/c") == "App"
