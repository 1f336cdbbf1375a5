"""Why a replay ends early."""


class ReplayError(Exception):
    """The replay cannot go on; its text tells the person at the keyboard why, free of secrets."""
