"""Audit events about credentials, and their stored form while they are pending."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from shared.observability import logs

_LOG = logs.get_logger("auth")
_MOST_LOGGED: Final = 500
_STATES: Final = frozenset({"before", "after"})


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """Audit event about a credential, for the audit chain AccessControl.

    Attributes:
        append_id: unique id of the event; a second append with the same id stores nothing.
        actor: id of the user who acts.
        action: ActionType, such as ``Token.Revoked``.
        entity_type: kind of the entity, such as ``Token``.
        entity_id: id of the entity, such as the id of the token.
        before: state of the entity before the action; None to omit it.
        after: state of the entity after the action; None to omit it.
    """

    append_id: str
    actor: str
    action: str
    entity_type: str
    entity_id: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None

    def build_record_content(self) -> dict[str, Any]:
        """Return the properties of the event's record."""
        content: dict[str, Any] = {
            "ActionType": self.action,
            "EntityType": self.entity_type,
            "EntityID": self.entity_id,
        }
        states = {"BeforeState": self.before, "AfterState": self.after}
        return content | {name: dict(state) for name, state in states.items() if state is not None}

    def to_json_text(self) -> str:
        """Return the stored form of the event, for :func:`parse_stored_event`."""
        return json.dumps(asdict(self))


_NAMES: Final = tuple(field.name for field in fields(AccessEvent))


def parse_stored_event(stored_json: object) -> AccessEvent | None:
    """Parse the stored form of a pending event; if it is damaged, log an error and return None."""
    try:
        members = json.loads(stored_json) if isinstance(stored_json, str | bytes) else None
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict) or not all(_is_valid_event_property(name, members.get(name)) for name in _NAMES):
        _LOG.error(
            "a pending audit event is damaged and cannot be appended",
            extra=logs.fields(stored=str(stored_json)[:_MOST_LOGGED]),
        )
        return None
    return AccessEvent(**{name: members[name] for name in _NAMES})


def _is_valid_event_property(property_name: str, value: object) -> bool:
    return value is None or isinstance(value, dict) if property_name in _STATES else isinstance(value, str)
