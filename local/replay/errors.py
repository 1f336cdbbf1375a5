"""Error of a replay."""


class ReplayError(Exception):
    """Failed replay, with the reason as text for the user, without secrets."""
