"""What a client of json.webpubsub.azure.v1 may do by itself: its roles, and what was granted since."""

from collections.abc import Iterable
from enum import StrEnum


class Permission(StrEnum):
    """An action that a client needs a permission for."""

    JOIN_LEAVE_GROUP = "joinLeaveGroup"
    SEND_TO_GROUP = "sendToGroup"


class Permissions:
    """The permissions of one connection, for every group or for one by name."""

    def __init__(self, roles: Iterable[str]) -> None:
        """Take roles: ``webpubsub.<permission>``, or ``webpubsub.<permission>.<group>``; others mean nothing."""
        self._held: set[tuple[Permission, str | None]] = set()
        for role in roles:
            for permission in Permission:
                prefix = f"webpubsub.{permission.value}"
                if role == prefix:
                    self.grant(permission, None)
                elif role.startswith(f"{prefix}."):
                    self.grant(permission, role.removeprefix(f"{prefix}."))

    def allows(self, permission: Permission, group: str | None) -> bool:
        """Return whether a permission is held for a group, None for every group."""
        return (permission, None) in self._held or (permission, group) in self._held

    def grant(self, permission: Permission, group: str | None) -> None:
        """Add a permission, None for every group."""
        self._held.add((permission, group))

    def revoke(self, permission: Permission, group: str | None) -> None:
        """Take a permission back."""
        self._held.discard((permission, group))
