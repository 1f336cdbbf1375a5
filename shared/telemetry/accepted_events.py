"""Fast conversion of events that this service has accepted over HTTP, or from a simulator, to impulses.

The properties of such an event are the impulse's ids and time, and its body is the payload. Their texts are copied. The
module ``normalisation`` converts all other events; for these, both conversions have the same result. Separate from
``ingest``, so that the two conversions can be compared.
"""

from datetime import datetime

from shared.telemetry.impulses import encode_impulse_of_texts, is_shallow
from shared.telemetry.layout import validate_id
from shared.telemetry.models import HubEvent
from shared.telemetry.properties import DEVICE_ID, MESSAGE_ID, TIMESTAMP, are_complete_without_headers
from shared.telemetry.routing import Route
from shared.timestamps import is_canonical

_LONGEST_PAYLOAD = 300_000
"""Size in bytes up to which an impulse is certainly small enough for the hub; accepted messages are smaller."""

_HOUR = slice(11, 13)
_END_OF_DAY = "24"


def encode_accepted_event(event: HubEvent, route: Route) -> bytes | None:
    """Return the impulse of an event as JSON text; None if the event needs the general conversion.

    Args:
        event: event whose body is a JSON object.
        route: connection to which the event belongs.
    """
    properties, payload = event.properties, event.body
    if event.device_id or not are_complete_without_headers(properties) or len(payload) > _LONGEST_PAYLOAD:
        return None
    timestamp = properties[TIMESTAMP]
    # An hour 24, which the general conversion rejects or changes, must not be copied.
    if not is_canonical(timestamp) or timestamp[_HOUR] == _END_OF_DAY or not is_shallow(payload):
        return None
    try:
        datetime.fromisoformat(timestamp)
        message_id, device_id = validate_id(properties[MESSAGE_ID]), validate_id(properties[DEVICE_ID])
        return encode_impulse_of_texts(message_id, timestamp, device_id, route.connection, route.surfaces, payload)
    except ValueError:
        return None
