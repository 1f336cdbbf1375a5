"""Permissions of a client of json.webpubsub.azure.v1, from its roles and later grants."""

from collections.abc import Iterable
from enum import StrEnum


class Permission(StrEnum):
    """Action that requires a permission."""

    JOIN_LEAVE_GROUP = "joinLeaveGroup"
    SEND_TO_GROUP = "sendToGroup"


class Permissions:
    """Permissions of one connection, for all groups or for single groups."""

    def __init__(self, roles: Iterable[str]) -> None:
        """Read the roles ``webpubsub.<permission>`` and ``webpubsub.<permission>.<group>``; ignore others."""
        self._granted: set[tuple[Permission, str | None]] = set()
        for role in roles:
            for permission in Permission:
                prefix = f"webpubsub.{permission.value}"
                if role == prefix:
                    self.grant(permission, None)
                elif role.startswith(f"{prefix}."):
                    self.grant(permission, role.removeprefix(f"{prefix}."))

    def allows(self, permission: Permission, group: str | None) -> bool:
        """Return whether a permission is granted for a group, None for all groups."""
        return (permission, None) in self._granted or (permission, group) in self._granted

    def grant(self, permission: Permission, group: str | None) -> None:
        """Grant a permission, None for all groups."""
        self._granted.add((permission, group))

    def revoke(self, permission: Permission, group: str | None) -> None:
        """Revoke a permission."""
        self._granted.discard((permission, group))
