"""Why the host does not start."""


class StartError(Exception):
    """The host cannot start; its text tells the person at the keyboard why."""
