"""Which of the standard's ``OTEL_*`` variables decide whether a collector is told something; the SDK reads the rest.

Source: OpenTelemetry, Environment Variable Specification and OTLP Exporter Configuration. An empty value is none.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

PROTOCOL: Final = "http/protobuf"
_NONE, _OTLP = "none", "otlp"
_EXPORTERS: Final = frozenset({"", _NONE, _OTLP})


class Signal(StrEnum):
    """What is told, as it is called in the names of variables."""

    TRACES = "TRACES"
    METRICS = "METRICS"


def disabled(environment: Mapping[str, str]) -> bool:
    """Return whether nothing is told to anybody: ``OTEL_SDK_DISABLED``."""
    return _value(environment, "OTEL_SDK_DISABLED").lower() == "true"


def told(signal: Signal, environment: Mapping[str, str]) -> bool:
    """Return whether a collector is told a signal.

    An endpoint names it, the signal's own or the general one, and so does the exporter ``otlp``, whose endpoint is the
    standard's then; the exporter ``none`` keeps it out.
    """
    return _wanted(signal, environment) and not list(_faults(signal, environment))


def faults(environment: Mapping[str, str]) -> list[str]:
    """Return what is asked for that there is not; what it is about is told nowhere."""
    return list(dict.fromkeys(fault for signal in Signal for fault in _faults(signal, environment)))


def _wanted(signal: Signal, environment: Mapping[str, str]) -> bool:
    exporter = _exporter(signal, environment)
    if disabled(environment) or exporter == _NONE:
        return False
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return bool(exporter) or any(_value(environment, name) for name in endpoints)


def _faults(signal: Signal, environment: Mapping[str, str]) -> Iterator[str]:
    if not _wanted(signal, environment):
        return
    exporter = _exporter(signal, environment)
    if exporter not in _EXPORTERS:
        yield f"OTEL_{signal}_EXPORTER={exporter}: otlp and none are known here"
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = _value(environment, name)
        if protocol and protocol != PROTOCOL:
            yield f"{name}={protocol}: {PROTOCOL} alone is spoken here"
        if protocol:
            return  # the signal's own goes before the general one


def _exporter(signal: Signal, environment: Mapping[str, str]) -> str:
    return _value(environment, f"OTEL_{signal}_EXPORTER").lower()


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()
