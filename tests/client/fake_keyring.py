"""Fake of the package `keyring`."""

from types import SimpleNamespace


def build_keyring(entries: dict[tuple[str, ...], str]) -> SimpleNamespace:
    """Build a module that replaces `keyring`.

    Args:
        entries: stored secrets, by service and user name; the module changes them.
    """
    return SimpleNamespace(
        set_password=lambda service, url, secret: entries.update({(service, url): secret}),
        get_password=lambda *entry: entries.get(entry),
        delete_password=lambda *entry: entries.pop(entry),
    )
