"""What a file is called by who saves it (RFC 6266)."""

import re
from urllib.parse import quote

_PLAIN = re.compile(r"[^A-Za-z0-9._ -]")


def content_disposition(file_name: str) -> str:
    """Return the header value that has a browser save a file under a name; any characters are fine in it."""
    plain = _PLAIN.sub("_", file_name)
    named = f'attachment; filename="{plain}"'
    return named if plain == file_name else f"{named}; filename*=UTF-8''{quote(file_name, safe='')}"
