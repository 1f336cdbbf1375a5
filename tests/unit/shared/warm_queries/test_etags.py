"""Entity tags of warm queries' definitions."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from shared.catalog.items import definition_of
from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Stored
from shared.warm_queries.etags import etag_of

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
APPROVAL = {"approvedBy": "admin@x", "approvedAt": "2026-01-05T09:00:00Z"}
DEFINITION: dict[str, Any] = {
    "lookup": "q",
    "apiPath": None,
    "name": "Q",
    "description": None,
    "surface": "s",
    "kql": "Telemetry | count",
    "parameters": [{"name": "d", "type": "dynamic", "default": {"b": 2**70, "a": ["\ud800", 1.5]}}],
    "cacheSeconds": 0,
    "approval": None,
}


def stored(**changes: Any) -> Stored[WarmQuery]:
    """Return the query as it is read from a store, with changes."""
    return Stored(WarmQuery.model_validate({**DEFINITION, **changes}), AT, AT, "editor@x")


@pytest.mark.parametrize(
    "other",
    [
        stored(kql="Telemetry | take 1"),
        stored(description=""),
        stored(parameters=[{"name": "d", "type": "dynamic", "default": None}]),
        stored(parameters=[{"name": "d", "type": "dynamic"}]),
        stored(cacheSeconds=1),
        stored(approval=APPROVAL),
        stored(approval={**APPROVAL, "approvedAt": "2026-01-05T09:00:00.000001Z"}),
        replace(stored(), updated_at=AT + timedelta(microseconds=1)),
        replace(stored(), edited_by="other@x"),
    ],
)
def test_every_change_makes_another_tag(other: Stored[WarmQuery]) -> None:
    """Text, approval, time and author of the last edit each change it."""
    assert etag_of(other) != etag_of(stored())


def test_the_tag_is_of_what_is_stored() -> None:
    """The order of members, the zone of times, and what was written with it do not change it."""
    turned = dict(reversed(DEFINITION.items()))
    elsewhere = AT.astimezone(timezone(timedelta(hours=2)))
    assert etag_of(Stored(WarmQuery.model_validate(turned), AT, elsewhere, "editor@x")) == etag_of(stored())
    written = json.loads(json.dumps(definition_of(stored().value)))
    assert etag_of(Stored(WarmQuery.model_validate(written), AT, AT, "editor@x")) == etag_of(stored())


class NewerQuery(WarmQuery):
    """A query as a later release may know it."""

    added: str = "something"


def test_a_release_that_knows_more_members_makes_the_same_tag() -> None:
    """What the stored definition does not have counts for nothing, so that two releases at work agree."""
    newer = NewerQuery.model_validate(DEFINITION)
    assert etag_of(Stored(newer, AT, AT, "editor@x")) == etag_of(stored())
    assert etag_of(Stored(newer.model_copy(update={"added": "else"}), AT, AT, "editor@x")) != etag_of(stored())


def test_every_process_makes_the_same_tag() -> None:
    """Nothing of the process goes into it: what is stored has this very tag."""
    assert etag_of(stored()) == '"497262fc5f61bd525ea9e9273ab0247038e1b3c9c9a03cbda44050460c88c309"'
