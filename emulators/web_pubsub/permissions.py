"""Permissions of a client of json.webpubsub.azure.v1, granted by its roles or by later requests of servers."""

from collections.abc import Iterable
from enum import StrEnum


class Permission(StrEnum):
    """Actions for which a client requires a permission, with their names in the REST API."""

    JOIN_LEAVE_GROUP = "joinLeaveGroup"
    SEND_TO_GROUP = "sendToGroup"


class Permissions:
    """Permissions of one client connection, for all groups or for single groups."""

    def __init__(self, roles: Iterable[str]) -> None:
        """Grant the permissions of the client's roles.

        The roles are ``webpubsub.<permission>`` and ``webpubsub.<permission>.<group>``; all other roles are ignored.
        """
        self._granted: set[tuple[Permission, str | None]] = set()
        for role in roles:
            for permission in Permission:
                prefix = f"webpubsub.{permission.value}"
                if role == prefix:
                    self.grant(permission, None)
                elif role.startswith(f"{prefix}."):
                    self.grant(permission, role.removeprefix(f"{prefix}."))

    def is_granted(self, permission: Permission, group: str | None) -> bool:
        """Return whether a permission is granted for a group, or for all groups if ``group`` is None."""
        return (permission, None) in self._granted or (permission, group) in self._granted

    def grant(self, permission: Permission, group: str | None) -> None:
        """Grant a permission for a group, or for all groups if ``group`` is None."""
        self._granted.add((permission, group))

    def revoke(self, permission: Permission, group: str | None) -> None:
        """Revoke a permission for a group, or for all groups if ``group`` is None."""
        self._granted.discard((permission, group))
