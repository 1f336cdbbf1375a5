"""HTTP operations on the members of the team."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import StringConstraints

from functions.catalog_items import (
    LIVE_MEMBERS,
    build_item_list_reply,
    build_item_reply,
    check_conditional_headers,
    get_caller,
    get_catalog_administration,
    last_change_to_json,
)
from functions.conditions import parse_conditional_headers
from functions.paging import CatalogPageQuery, build_cursor_check, select_page
from functions.reply_docs import workspace as replies
from shared.auth.rights import AccessRight, Role
from shared.catalog.administration import build_member_not_found_error
from shared.catalog.fields import DECLARED, PrintableText, find_reserved_id_error
from shared.catalog.items import ItemKind
from shared.catalog.models import Member, select_known_rights_of_member
from shared.catalog.ports import CatalogItem
from shared.errors import ValidationErrors, build_invalid_field_error
from shared.http.messages import Reply
from shared.http.operations import Call, Group, ServerManagedProperties, StrictBody
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.validation.names import MAX_NAME, Name, find_id_error
from shared.wiring import services

GROUP = Group("team")
_ROUTE = "oi-api/team/{id}"


class MemberBody(StrictBody):
    """Request body that defines a member; if `enabled` or `oid` is omitted, the stored value stays."""

    validation_context: ClassVar[Mapping[str, Any]] = DECLARED

    name: Name
    role: Role
    rights: tuple[AccessRight, ...] = ()
    enabled: bool = True
    service: bool = False
    oid: Annotated[PrintableText, StringConstraints(min_length=1, max_length=MAX_NAME)] | None = None


@GROUP.endpoint(
    "GET",
    "oi-api/team",
    right=AccessRight.TEAM_READ,
    query=CatalogPageQuery,
    check=build_cursor_check("members"),
    docs=replies.MEMBERS_LISTED,
)
async def list_members(call: Call[CatalogPageQuery]) -> Reply:
    """Return the members of the team, sorted by id."""
    catalog = await services().catalog.get_current_catalog()
    page, cursor = select_page("members", catalog.members, call.query)

    def member_to_json(key: str) -> dict[str, Any]:
        return _member_to_json(catalog.items[ItemKind.MEMBER, key], catalog.members[key])

    return await build_item_list_reply("members", page, cursor, member_to_json)


@GROUP.endpoint("GET", _ROUTE, right=AccessRight.TEAM_READ, docs=replies.MEMBER_READ)
async def read_member(call: Call) -> Reply:
    """Return a member of the team."""
    catalog = await services().catalog.get_current_catalog()
    member = catalog.members.get(call.path["id"])
    if member is None:
        raise build_member_not_found_error(call.path["id"])
    return build_item_reply(_member_to_json(catalog.items[ItemKind.MEMBER, member.id], member))


async def _read_current_member(path_parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored member as JSON with its read-only properties; only its id if the member does not exist."""
    item = await get_catalog_administration().find(ItemKind.MEMBER, path_parameters["id"])
    return {"id": path_parameters["id"]} if item is None else _parse_member_and_build_json(item)


async def _check_member(call: Call[Any, MemberBody], faults: ValidationErrors) -> None:
    member_id = call.path["id"]
    rule = find_id_error(member_id) or find_reserved_id_error(member_id)
    if len(member_id) > MAX_NAME:
        rule = f"must have at most {MAX_NAME} characters"
    # An id from before a rule can still be edited.
    if rule and member_id not in (await services().catalog.get_current_catalog()).members:
        faults.add(build_invalid_field_error("id", rule))
    check_conditional_headers(faults, call.request)


@GROUP.endpoint(
    "PUT",
    _ROUTE,
    right=AccessRight.TEAM_MANAGE,
    body=MemberBody,
    server_set=ServerManagedProperties(
        frozenset(replies.MemberDefinition.__annotations__) - map_accepted_names_to_documented_names(MemberBody).keys(),
        _read_current_member,
        volatile=LIVE_MEMBERS,
    ),
    check=_check_member,
    docs=replies.MEMBER_PUT,
)
async def put_member(call: Call[Any, MemberBody]) -> Reply:
    """Add a member, or replace its definition.

    A disabled member's API keys are refused, and its tokens and live streams end.
    """
    condition = parse_conditional_headers(call.request)
    build = partial(_build_member, call.path["id"], call.body)
    replaced = await get_catalog_administration().put(
        get_caller(call), ItemKind.MEMBER, call.path["id"], build, condition
    )
    return build_item_reply(_parse_member_and_build_json(replaced.item), is_new=replaced.is_new)


@GROUP.endpoint("DELETE", _ROUTE, right=AccessRight.TEAM_MANAGE, docs=replies.MEMBER_DELETED)
async def delete_member(call: Call) -> Reply:
    """Remove a member and revoke its credentials; the id cannot be used again."""
    condition = parse_conditional_headers(call.request)
    await get_catalog_administration().delete(get_caller(call), ItemKind.MEMBER, call.path["id"], condition)
    return Reply(204)


def _build_member(member_id: str, body: MemberBody, stored_member: Mapping[str, Any] | None) -> Member:
    """Build a member from a request body; if the body omits `enabled` or `oid`, use the value of ``stored_member``."""
    kept = (
        {}
        if stored_member is None
        else {name: stored_member[name] for name in ("enabled", "oid") if name in stored_member}
    )
    sent = body.model_dump(include={"enabled", "oid"}, exclude_unset=True)
    return Member.model_validate(
        {
            "id": member_id,
            "name": body.name,
            "role": body.role,
            "rights": body.rights,
            "service": body.service,
            **kept,
            **sent,
        }
    )


def _parse_member_and_build_json(item: CatalogItem) -> dict[str, Any]:
    return _member_to_json(item, Member.model_validate(select_known_rights_of_member(item.definition)))


def _member_to_json(item: CatalogItem, member: Member) -> dict[str, Any]:
    described = {name: value for name, value in last_change_to_json(item).items() if name != "createdAt"}
    return {**member.model_dump(mode="json"), "accessRights": sorted(member.access_rights), **described}
