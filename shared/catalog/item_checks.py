"""Checks of single catalog items by the rules for workspace documents."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Final

from shared.catalog.checks import check_sections
from shared.catalog.items import WorkspaceSettings
from shared.catalog.models import AlertRule, Connection, Surface, WorkspaceDocument, WorkspaceInfo
from shared.catalog.problems import format_path
from shared.catalog.sections import REFERENCED, Sections
from shared.errors import MAX_LISTED, FieldError

EMPTY: Final = Sections(None, (), (), (), (), (), (), (), dict.fromkeys(REFERENCED, frozenset()))
"""Sections of a document without items."""


def find_connection_errors(connection: Connection) -> list[FieldError]:
    """Return an error for each contradiction between fields of a connection, such as a simulator with ``eventHub``."""
    return _find_errors_of_single_item(replace(EMPTY, connections=((0, connection),)), 2)


def find_surface_errors(surface: Surface, connection_lookups: Iterable[str]) -> list[FieldError]:
    """Return the errors of a surface (group of connections), such as unknown connections.

    Args:
        surface: a surface with valid fields.
        connection_lookups: lookups (ids in URLs) of the existing connections.
    """
    known = {**EMPTY.declared_keys, "connections": frozenset(connection_lookups)}
    return _find_errors_of_single_item(replace(EMPTY, surfaces=((0, surface),), declared_keys=known), 2)


def find_alert_rule_errors(
    rule: AlertRule, connection_lookups: Iterable[str], surface_lookups: Iterable[str]
) -> list[FieldError]:
    """Return the errors of an alert rule, such as unknown connections or contradictory fields.

    Args:
        rule: a rule with valid fields.
        connection_lookups: lookups (ids in URLs) of the existing connections.
        surface_lookups: lookups (ids in URLs) of the existing surfaces (groups of connections).
    """
    known = {
        **EMPTY.declared_keys,
        "connections": frozenset(connection_lookups),
        "surfaces": frozenset(surface_lookups),
    }
    return _find_errors_of_single_item(replace(EMPTY, alert_rules=((0, rule),), declared_keys=known), 2)


def find_settings_errors(workspace: WorkspaceInfo, settings: WorkspaceSettings) -> list[FieldError]:
    """Return the errors of the workspace's policies, such as a quota above the tier's maximum."""
    head = WorkspaceDocument(
        workspace=workspace, tier=settings.tier, limits=settings.limits, policies=settings.policies
    )
    return _find_errors_of_single_item(replace(EMPTY, head=head), 0)


def _find_errors_of_single_item(sections: Sections, item_path_length: int) -> list[FieldError]:
    """Return the errors of a workspace document that has only one item, with field paths relative to the item.

    At most ``MAX_LISTED + 1`` errors are returned. An error reply lists ``MAX_LISTED`` of them; the additional error
    shows that there are more.

    Args:
        sections: sections of a document that contain only the item.
        item_path_length: number of steps from the root of a workspace document to the item.
    """
    found = islice(check_sections(sections), MAX_LISTED + 1)
    return [FieldError(format_path(path[item_path_length:]), rule) for path, rule in found]
