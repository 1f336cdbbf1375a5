"""Error of a local host that cannot start."""


class StartError(Exception):
    """The local host cannot start; the message is shown to the user."""
