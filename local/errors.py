"""Error of a failed start."""


class StartError(Exception):
    """Failed start of the host, with the reason as text for the user."""
