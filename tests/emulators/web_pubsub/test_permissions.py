"""Tests of the permissions of Web PubSub clients."""

from emulators.web_pubsub.permissions import Permission, Permissions

JOIN, SEND = Permission.JOIN_LEAVE_GROUP, Permission.SEND_TO_GROUP


def test_a_role_for_all_groups_allows_each_group() -> None:
    """A role that names no group allows its action in all groups, and no other action."""
    permissions = Permissions(["webpubsub.joinLeaveGroup"])
    assert permissions.is_granted(JOIN, "a")
    assert permissions.is_granted(JOIN, None)
    assert not permissions.is_granted(SEND, "a")


def test_a_role_for_a_group_allows_only_that_group() -> None:
    """A role that names a group, whose name may contain dots, allows its action only in this group."""
    permissions = Permissions(["webpubsub.sendToGroup.line.1", "unknown", "webpubsub.sendToGroupX"])
    assert permissions.is_granted(SEND, "line.1")
    assert not permissions.is_granted(SEND, "line")
    assert not permissions.is_granted(SEND, None)


def test_granted_permissions_can_be_revoked() -> None:
    """Revoking a granted permission ends it; revoking a permission that was not granted changes nothing."""
    permissions = Permissions([])
    permissions.grant(SEND, "a")
    assert permissions.is_granted(SEND, "a")
    permissions.revoke(SEND, "a")
    permissions.revoke(SEND, "a")
    assert not permissions.is_granted(SEND, "a")
