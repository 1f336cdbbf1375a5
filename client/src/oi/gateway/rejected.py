"""Descriptions of rejected messages, which are received messages that cannot be sent to the service."""

import json

from oi.gateway.messages import format_unix_seconds_as_rfc3339
from oi.gateway.settings import SpoolSettings
from oi.gateway.spool import GatewaySpool

_LONGEST_SHOWN = 120


def describe_rejected_messages(settings: SpoolSettings, limit: int, *, as_json: bool) -> list[str]:
    """Return a line of text about each of the newest rejected messages, with the reason.

    Args:
        settings: settings of the spool file, which contains the rejected messages.
        limit: maximum number of messages.
        as_json: whether each line is a JSON object with the whole message.

    Raises:
        SpoolInUseError: the gateway runs and uses the spool file.
        OSError: the spool file cannot be opened.
    """
    if not settings.path.exists():
        raise FileNotFoundError(f"The spool file {settings.path} does not exist; check `spool.path`.")
    spool = GatewaySpool(settings)
    try:
        found = spool.list_newest_rejected(limit)
    finally:
        spool.close()
    lines = []
    for seconds, each in found:
        time, text = format_unix_seconds_as_rfc3339(seconds), each.message.decode("utf-8", "replace").strip()
        place = each.address or f"connection {each.lookup}"
        if as_json:
            members = {"time": time, "topic": each.address, "connection": each.lookup, "reason": each.reason}
            lines.append(json.dumps({**members, "detail": each.detail, "message": text}))
        else:
            lines.append(f"{time}  {place}  {each.reason}: {each.detail}  {text[:_LONGEST_SHOWN]}")
    return lines
