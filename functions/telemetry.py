"""HTTP operation that accepts telemetry."""

from typing import Any

from functions.replies import telemetry as replies
from shared.auth.rights import AccessRight
from shared.http.messages import Reply, json_reply
from shared.http.operations import Call, Group
from shared.http.unknown_names import UnknownNames
from shared.wiring import services

GROUP = Group("telemetry")


@GROUP.endpoint(
    "POST",
    "oi-api/telemetry/{lookup}",
    right=AccessRight.TELEMETRY_WRITE,
    body=Any,
    unknown=UnknownNames.IGNORE,
    docs=replies.ACCEPTED,
)
async def accept_telemetry(call: Call[Any, Any]) -> Reply:
    """Accept one telemetry message, or an array of up to 500, for a data connection."""
    accepted = await services().telemetry.accept(call.path["lookup"], call.body, size=len(call.request.body))
    return json_reply({"accepted": accepted}, 202)
