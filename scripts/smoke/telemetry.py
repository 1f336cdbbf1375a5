"""Choice of a connection, a sender and a device for the telemetry message of the smoke test."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from scripts.smoke.calls import OK, CheckFailedError, FeatureMissingError, SmokeContext, TokenHolder

DEVICE = "smoke"
_WILDCARD = re.compile(r"\[(.)[^]]*\]|\*|\?")


@dataclass(frozen=True)
class TelemetryRoute:
    """Sender, connection and device with which the workspace accepts a telemetry message.

    Attributes:
        sender: team member, or holder of an API key that is bound to certain connections, who may send the message.
        connection: lookup (id in URLs) of the connection.
        device_id: device that the connection and the sender's key allow.
        source: JSON pointers of the connection to the fields of its messages.
    """

    sender: TokenHolder
    connection: str
    device_id: str
    source: dict[str, Any]

    def build_message(self, message_id: str) -> dict[str, Any]:
        """Build a telemetry message with its device id and message id at the JSON pointers of the connection."""
        message: dict[str, Any] = {"value": 1.5}
        _set_value_at_json_pointer(message, self.source["deviceIdPointer"], self.device_id)
        _set_value_at_json_pointer(message, self.source["messageIdPointer"], message_id)
        return message


class _Sender(NamedTuple):
    """Member who may write telemetry.

    Attributes:
        member: holder of the token.
        identity: reply of the operation ``whoami`` for the member's key; if the key is bound, the reply contains the
            ``connections`` and ``devices`` for which the key may send telemetry.
    """

    member: TokenHolder
    identity: dict[str, Any]


def find_telemetry_route(context: SmokeContext, reader: TokenHolder, connections: Sequence[str]) -> TelemetryRoute:
    """Return the first sender, connection and device with which a telemetry message can be sent.

    Args:
        context: state of the smoke test, with the keys; keys that are bound to certain connections are tried first.
        reader: team member who may read the catalog.
        connections: lookups (ids in URLs) of the enabled connections in the order of preference.

    Raises:
        FeatureMissingError: if no key may send a message, or if no connection accepts a message with an id.
    """
    policy = reader.get("/oi-api/workspace").require_status(OK).json["policies"]["telemetry"]
    senders = list(_iterate_senders(context))
    if policy["requireBoundKeys"]:
        senders = [each for each in senders if "connections" in each.identity]
        if not senders:
            raise FeatureMissingError("the policy requireBoundKeys requires an API key with `connections` in KEYS_FILE")
    for connection in connections:
        source = reader.get(f"/oi-api/connections/{connection}").require_status(OK).json["source"]
        if not source["messageIdPointer"]:
            continue
        declared = source["devices"] if policy["requireDeclaredDevices"] else []
        for sender, binding in senders:
            if connection in binding.get("connections", [connection]):
                fixed = "" if source["deviceIdPointer"] else connection
                device = find_device_id_or_empty([declared, binding.get("devices") or []], fixed)
                if device:
                    return TelemetryRoute(sender, connection, device, source)
    raise FeatureMissingError(
        f"no API key can send a test message to {', '.join(connections)}: each of these connections has no "
        "`messageIdPointer`, or no key may send to it for a device that it accepts"
    )


def choose_connections(usable_lookups: Sequence[str], wanted_lookup: str) -> Sequence[str]:
    """Return the wanted connection, or all usable ones if none is wanted.

    Args:
        usable_lookups: lookups (ids in URLs) of the connections that accept messages.
        wanted_lookup: lookup of the wanted connection; empty for any.

    Raises:
        CheckFailedError: if the wanted connection accepts no messages.
        FeatureMissingError: if no connection accepts messages.
    """
    if wanted_lookup and wanted_lookup not in usable_lookups:
        raise CheckFailedError(f"--connection {wanted_lookup}: no enabled connection except simulators has this lookup")
    if not usable_lookups:
        raise FeatureMissingError("no connection of the workspace accepts messages")
    return [wanted_lookup] if wanted_lookup else usable_lookups


def find_device_id_or_empty(pattern_lists: Sequence[Sequence[str]], fixed_device_id: str = "") -> str:
    """Return a device id that matches at least one pattern of each list; empty if none was found.

    Args:
        pattern_lists: lists of shell-style patterns; an empty list allows each device.
        fixed_device_id: device id of all messages of the connection; empty if each message names its device.
    """
    made = [DEVICE, *(_build_matching_text(pattern) for limit in pattern_lists for pattern in limit)]
    for device in [fixed_device_id] if fixed_device_id else made:
        if all(not limit or any(fnmatchcase(device, pattern) for pattern in limit) for limit in pattern_lists):
            return device
    return ""


def _iterate_senders(context: SmokeContext) -> Iterator[_Sender]:
    """Yield the members who may write telemetry, each with the restrictions of its key.

    Holders of bound keys, which are restricted to certain connections, are first.
    """
    unbound = []
    for member in context.members:
        if "Workspace.Telemetry.Write" in member.rights:
            identity = member.get("/workspace/api/keys/whoami").require_status(OK).json
            if "connections" in identity:
                yield _Sender(member, identity)
            else:
                unbound.append(_Sender(member, identity))
    yield from unbound


def _build_matching_text(pattern: str) -> str:
    # The first character behind the bracket matches [abc], and the exclamation mark matches [!abc].
    return _WILDCARD.sub(lambda found: found[1] or {"*": DEVICE, "?": "0"}[found[0]], pattern)


def _set_value_at_json_pointer(message: dict[str, Any], pointer: str, value: str) -> None:
    if not pointer:
        return
    *parents, name = (token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/"))
    for parent in parents:
        message = message.setdefault(parent, {})
    message[name] = value
