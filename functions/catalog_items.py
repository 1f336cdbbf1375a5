"""Functions that the HTTP operations on catalog items share.

Catalog items are data connections, surfaces (groups of connections), team members and others.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from functions.conditions import parse_conditional_headers
from shared.catalog.administration import Administration
from shared.catalog.change_rules import Caller
from shared.catalog.etags import compute_definition_etag
from shared.catalog.models import LOOKUP_PATTERN
from shared.catalog.ports import CatalogItem
from shared.errors import FieldError, ValidationErrors, build_invalid_field_error, build_invalid_fields_error
from shared.http.messages import Reply, Request, build_json_reply
from shared.http.operations import Call
from shared.timestamps import format_rfc3339
from shared.wiring import services

_ITEM_SIZE: Final = 1_000
"""Estimated number of characters of one item in a reply."""

LIVE_MEMBERS: Final = frozenset({"status", "statusReason", "stats", "version", "createdAt", "updatedAt"})
"""Properties that change without a change of the definition; a PUT ignores them."""


def get_catalog_administration() -> Administration:
    """Return the service that changes single catalog items."""
    return services().provenance.administration


def get_caller(call: Call[Any, Any]) -> Caller:
    """Return the team member and the credential that request a change, for rights checks and the audit event."""
    return Caller.from_principal(call.principal)


def check_conditional_headers(faults: ValidationErrors, request: Request) -> None:
    """Check the headers If-Match and If-None-Match of a request, and add an error to ``faults`` if one is malformed."""
    with faults.collect_raised_error():
        parse_conditional_headers(request)


def check_lookup(faults: ValidationErrors, lookup: str) -> None:
    """Check the lookup (short name) of an item in the URL path, and add an error to ``faults`` if it is invalid."""
    if not re.fullmatch(LOOKUP_PATTERN, lookup):
        faults.add(
            build_invalid_field_error(
                "lookup", "must have up to 64 letters, digits, _ and -, and begin with a letter or a digit"
            )
        )


def add_field_errors(faults: ValidationErrors, errors: Iterable[FieldError]) -> None:
    """Add errors of an item's fields to ``faults``, except for fields that are already marked as invalid there."""
    new = [error for error in errors if faults.has_valid_fields(re.split(r"[.\[]", error.field, maxsplit=1)[0])]
    if new:
        faults.add(build_invalid_fields_error(new))


def compute_item_etag(item: CatalogItem) -> str:
    """Compute the ETag of a catalog item from its definition."""
    return compute_definition_etag(item.definition)


def last_change_to_json(item: CatalogItem) -> dict[str, Any]:
    """Return a catalog item's times of creation and last change, its last editor and its ETag as JSON properties."""
    return {
        "createdAt": format_rfc3339(item.created_at),
        "updatedAt": format_rfc3339(item.updated_at),
        "editedBy": item.edited_by,
        "etag": compute_item_etag(item),
    }


async def build_item_list_reply(
    property_name: str,
    keys: Sequence[str],
    cursor_property: Mapping[str, str],
    item_to_json: Callable[[str], dict[str, Any]],
) -> Reply:
    """Build the reply with a page of items, in a worker thread if the page is large.

    Args:
        property_name: name of the property that contains the items.
        keys: keys of the page's items.
        cursor_property: dictionary with the reply's property `cursor`; empty if no page follows.
        item_to_json: receives the key of an item and returns its JSON object; it must not use objects of the event
            loop.
    """

    def build_reply() -> Reply:
        return build_json_reply({property_name: [item_to_json(key) for key in keys], **cursor_property})

    return await services().runtime.run_in_thread_if_large(len(keys) * _ITEM_SIZE, build_reply)


def build_item_reply(item_json: dict[str, Any], *, is_new: bool = False) -> Reply:
    """Build the reply with the JSON object of an item; its status is 201 for a new item, else 200.

    Args:
        item_json: JSON object of the item; its property `etag` also becomes the header ETag.
        is_new: whether the request has created the item.
    """
    return build_json_reply(item_json, 201 if is_new else 200, {"ETag": item_json["etag"]})
