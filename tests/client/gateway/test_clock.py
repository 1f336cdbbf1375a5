"""Tests of the timestamps that the gateway adds when the clock of its machine is changed."""

from email.utils import formatdate
from types import SimpleNamespace

import pytest
from oi.gateway import clock as clock_module
from oi.gateway.clock import ReceiveClock

START = 1_767_600_000.0


class MachineClocks:
    """Fake wall clock and monotonic clock of a machine, which a test sets."""

    def __init__(self) -> None:
        self.wall = START
        self.monotonic = 5.0

    def advance(self, seconds: float) -> None:
        """Advance both clocks."""
        self.wall += seconds
        self.monotonic += seconds


@pytest.mark.parametrize("jump", [-86_400.0, 3_600.0])
def test_the_gateway_corrects_a_clock_jump_by_the_time_of_the_service(jump: float) -> None:
    """If the machine's clock is changed, the gateway uses the time of the service, so that timestamps stay in order."""
    clocks = MachineClocks()
    clock = ReceiveClock(lambda: clocks.wall, lambda: clocks.monotonic)
    clock.record_service_time(formatdate(START, usegmt=True))
    clocks.wall += jump
    clocks.advance(10)
    assert clock.now_unix_seconds() == START + 10
    assert clock.get_clock_lead_seconds() == jump


def test_the_time_of_the_service_advances_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the machine was suspended, the gateway has the right time before the next reply of the service."""
    clocks = MachineClocks()
    # The usual monotonic clock of Linux stops in the meantime.
    system = SimpleNamespace(CLOCK_BOOTTIME=7, clock_gettime=lambda _: clocks.monotonic, monotonic=lambda: 5.0)
    monkeypatch.setattr(clock_module, "time", system)
    clock = ReceiveClock(lambda: clocks.wall)
    clock.record_service_time(formatdate(START, usegmt=True))
    clocks.advance(1_800)
    assert (clock.now_unix_seconds(), clock.get_clock_lead_seconds()) == (START + 1_800, 0.0)


def test_a_small_clock_difference_is_not_corrected() -> None:
    """A small difference from the service's time is ignored, because the header Date is less precise."""
    clocks = MachineClocks()
    clock = ReceiveClock(lambda: clocks.wall, lambda: clocks.monotonic)
    clock.record_service_time(formatdate(START - 30, usegmt=True))
    clocks.advance(0.25)
    assert clock.now_unix_seconds() == START + 0.25


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_without_a_valid_service_time_the_machine_clock_is_used(date: str) -> None:
    """If the header Date of a reply is invalid, the gateway uses the clock of its machine."""
    clocks = MachineClocks()
    clock = ReceiveClock(lambda: clocks.wall, lambda: clocks.monotonic)
    clock.record_service_time(date)
    clocks.wall += 3_600
    assert (clock.now_unix_seconds(), clock.get_clock_lead_seconds()) == (START + 3_600, 0.0)
