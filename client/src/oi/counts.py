"""Texts of counts, such as "1 record" and "2 records"."""


def format_count(count: int, singular: str, plural: str = "", *, separator: str = "") -> str:
    """Format a count with its noun.

    Args:
        count: the number of things.
        singular: noun for one thing.
        plural: noun for any other number of things; empty for the singular with an ``s``.
        separator: ``,`` to group the digits by thousands.
    """
    return f"{count:{separator}} {singular if count == 1 else plural or f'{singular}s'}"
