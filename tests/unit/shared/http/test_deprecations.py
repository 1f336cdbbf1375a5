"""Tests of deprecated operations and names."""

from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, BaseModel, Field

from shared.auth.principals import CredentialKind, Principal
from shared.http.deprecations import (
    FORMER_NAMES,
    DeprecatedAlias,
    Deprecation,
    ModelWithAliases,
    add_deprecation_headers,
    iterate_used_deprecations,
)
from shared.http.messages import Reply, Request
from shared.http.operations import Access, Call, Group, Operation
from shared.http.pipeline import RequestPipeline
from shared.http.unknown_names import UnknownNames
from shared.openapi.paths import build_operation_object
from shared.openapi.schemas import SchemaRegistry

OLD = Deprecation(date(2026, 1, 1), date(2027, 1, 1))
GROUP = Group("test")


class Inner(ModelWithAliases):
    """Model with one renamed field."""

    start: Annotated[int, DeprecatedAlias("from", OLD)] = Field(validation_alias=AliasChoices("start", "from"))


class Outer(BaseModel):
    """Body model that contains a model with a renamed field."""

    inner: Inner = Field(alias="range")


@GROUP.endpoint("POST", "renamed", access=Access.PUBLIC, body=Outer)
async def accept_renamed_field(_: Call[Any, Outer]) -> Reply:
    """Accept a body that contains a renamed field."""
    return Reply(204)


@GROUP.endpoint("GET", "old", access=Access.PUBLIC, unknown=UnknownNames.REJECT, deprecation=FORMER_NAMES)
async def reply_as_deprecated(_: Call) -> Reply:
    """Reply, as a deprecated operation."""
    return Reply(200, b"", {"Link": '</next>; rel="next"'})


async def serve_request(method: str, path: str, body: bytes = b"") -> Reply:
    """Return the reply of a pipeline to a request."""

    async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        raise AssertionError(f"public operations need no credential: {authorization} {accepted}")

    async def require_feature(feature: str) -> None:
        raise AssertionError(f"the operations need no feature: {feature}")

    return await RequestPipeline(GROUP.operations, authenticate, require_feature).serve(
        Request(method, path, "", {}, body)
    )


def find_operation(name: str) -> Operation:
    """Return an operation of the test's group."""
    return next(each for each in GROUP.operations if each.name == name)


def test_a_removal_is_twelve_months_after_its_announcement() -> None:
    """The removal date of a deprecation must be at least twelve months after its announcement."""
    with pytest.raises(ValueError, match="12 months"):
        Deprecation(date(2026, 12, 1), date(2027, 11, 30))


@pytest.mark.parametrize(
    ("sent", "count"),
    [({"range": {"from": 1}}, 1), ({"range": {"start": 1}}, 0), ({"range": 1}, 0), ([], 0), ({"from": 1}, 0)],
)
def test_a_former_name_counts_only_in_the_object_that_had_it(sent: object, count: int) -> None:
    """A former name counts as deprecated only in the object that has the renamed field."""
    assert list(iterate_used_deprecations(Outer, sent)) == [OLD] * count


def test_deprecation_headers_have_the_earliest_dates() -> None:
    """If several deprecations apply, Deprecation and Sunset have the earliest dates."""
    reply = Reply()
    add_deprecation_headers(reply, [FORMER_NAMES, OLD])
    assert reply.headers["Deprecation"] == "@1767225600"
    assert reply.headers["Sunset"] == "Fri, 01 Jan 2027 00:00:00 GMT"
    assert 'rel="deprecation"' in reply.headers["Link"]


@pytest.mark.parametrize("body", [b'{"range": {"from": 1}}', b'{"range": {"from": "x"}}'])
async def test_replies_to_former_names_have_deprecation_headers(body: bytes) -> None:
    """Each reply to a request with a former name, also an error, has the deprecation headers."""
    assert (await serve_request("POST", "/renamed", body)).headers["Deprecation"] == "@1767225600"


async def test_replies_to_current_names_have_no_deprecation_headers() -> None:
    """A reply to a request without deprecated names has no deprecation headers."""
    headers = (await serve_request("POST", "/renamed", b'{"range": {"start": 1}}')).headers
    assert headers.keys().isdisjoint({"Deprecation", "Sunset", "Link"})


async def test_deprecated_operations_keep_their_links() -> None:
    """A reply of a deprecated operation has the deprecation headers and its own links."""
    headers = (await serve_request("GET", "/old")).headers
    assert headers["Deprecation"] == "@1796083200"
    assert headers["Link"] == '</next>; rel="next", </oi-api/explorer>; rel="deprecation"; type="text/html"'


def test_openapi_marks_deprecations() -> None:
    """The OpenAPI document marks deprecated operations and former names as deprecated."""
    schemas = SchemaRegistry()
    assert build_operation_object(find_operation("reply_as_deprecated"), schemas)["deprecated"] is True
    assert "deprecated" not in build_operation_object(find_operation("accept_renamed_field"), schemas)
    assert schemas.named["Inner"]["properties"]["from"]["deprecated"] is True
    assert "deprecated" not in schemas.named["Inner"]["properties"]["start"]
