"""Recognition of messages that the MQTT broker delivers a second time.

A broker that receives no acknowledgement of a message sends the message again, with the flag DUP and the same packet
id. If the gateway stopped, or lost the connection, before the acknowledgement arrived, the message is already stored.
"""

import hashlib
import struct
from collections.abc import Iterable

_MARK = struct.Struct(">H8s")
_PACKET_IDS = 2**16 - 1


def build_delivery_mark(packet_id: int, topic: str, payload: bytes) -> bytes:
    """Build the mark that identifies a delivery: its packet id and a digest of the message."""
    digest = hashlib.blake2b(topic.encode("utf-8", "surrogatepass"), digest_size=8)
    digest.update(b"\0")
    digest.update(payload)
    return _MARK.pack(packet_id, digest.digest())


class Redeliveries:
    """Set of deliveries over earlier connections to the broker, which the broker can repeat.

    Args:
        marks: marks of the stored deliveries, oldest first; each element may contain several marks. Of several marks
            with the same packet id, the newest is used: the broker reuses an id only after an acknowledgement.
    """

    def __init__(self, marks: Iterable[bytes] = ()) -> None:
        # Brokers can exceed the Receive Maximum, but not the number of packet ids.
        together = b"".join(marks)[-_PACKET_IDS * _MARK.size :]
        self._known = dict(_MARK.iter_unpack(together))

    def remove_if_known(self, mark: bytes) -> bool:
        """Return whether a delivery repeats an earlier delivery; if it does, forget the earlier delivery.

        Args:
            mark: result of :func:`build_delivery_mark`, which identifies the delivery by its packet id and its message.
        """
        packet_id, digest = _MARK.unpack(mark)
        if self._known.get(packet_id) != digest:
            return False
        del self._known[packet_id]
        return True
