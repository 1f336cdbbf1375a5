"""Metrics of the gateway, and their output in Prometheus' text format."""

from collections import Counter
from collections.abc import Callable

PREFIX = "oi_gateway_"
_COUNTERS = {
    "received_messages_total": "Messages received from the source.",
    "stored_messages_total": "Messages stored in the spool.",
    "sent_messages_total": "Messages that the service accepted.",
    "repeated_messages_total": "Messages that the source delivered a second time and that were stored before.",
    "rejected_messages_total": "Messages that cannot be sent, by reason.",
    "dropped_messages_total": "Waiting messages that were deleted to make room.",
    "ignored_messages_total": "Retained messages that were ignored.",
    "failed_requests_total": "Requests to the service that failed, by error code.",
    "connections_total": "Connections that the source opened.",
}
_GAUGES = {
    "waiting_messages": "Messages in the spool.",
    "waiting_bytes": "Size of the messages in the spool.",
    "spool_limit_bytes": "Maximum size of the messages in the spool.",
    "rejected_bytes": "Size of the rejected messages in the spool.",
    "deleted_rejected_messages": "Rejected messages that were deleted since the start to make room for newer ones.",
    "source_connected": "1 if the source is connected.",
    "spool_blocked": "1 if messages cannot be stored: the spool or the disk is full.",
    "last_sent_timestamp_seconds": "Time at which the service last accepted messages.",
    "clock_difference_seconds": "Seconds by which this machine's clock is ahead of the service's.",
    "certificate_expires_timestamp_seconds": "Time at which the client certificate expires.",
}


class Metrics:
    """Counters and gauges of one gateway."""

    def __init__(self) -> None:
        self._counters: Counter[tuple[str, str]] = Counter()
        self._gauges: dict[str, Callable[[], float]] = {}

    def increase_counter(self, name: str, amount: int = 1, label: str = "") -> None:
        """Increase a counter by an amount.

        Args:
            name: name of the counter without the common prefix of all metrics.
            amount: number to add.
            label: label with its value, such as ``reason="not_json"``.
        """
        self._counters[name, label] += amount

    def get_count(self, name: str, label: str = "") -> int:
        """Return the current value of a counter."""
        return self._counters[name, label]

    def set_gauge(self, name: str, value: float) -> None:
        """Set the value of a gauge."""
        self._gauges[name] = lambda: value

    def set_gauge_function(self, name: str, read_value: Callable[[], float]) -> None:
        """Set a function that returns the value of a gauge and is called each time the metrics are output."""
        self._gauges[name] = read_value

    def format_prometheus_text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        lines = []
        for name, text in _COUNTERS.items():
            lines += [f"# HELP {PREFIX}{name} {text}", f"# TYPE {PREFIX}{name} counter"]
            labelled = sorted(label for counted, label in self._counters if counted == name and label)
            for label in labelled or [""]:
                shown = f"{{{label}}}" if label else ""
                lines.append(f"{PREFIX}{name}{shown} {self._counters[name, label]}")
        for name, text in _GAUGES.items():
            if name in self._gauges:
                lines += [f"# HELP {PREFIX}{name} {text}", f"# TYPE {PREFIX}{name} gauge"]
                lines.append(f"{PREFIX}{name} {self._gauges[name]():.15g}")
        return "\n".join(lines) + "\n"
