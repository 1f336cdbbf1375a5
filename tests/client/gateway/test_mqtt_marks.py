"""Tests that the gateway recognises messages that the broker delivers again."""

from oi.gateway.sources.mqtt_marks import Redeliveries, build_delivery_mark


def test_a_repeated_delivery_is_recognised_once() -> None:
    """A repeated delivery with the same packet id, topic and payload is recognised, but only once."""
    mark = build_delivery_mark(7, "a/b", b"{}")
    known = Redeliveries([build_delivery_mark(6, "a/b", b"{}") + mark])
    assert not known.remove_if_known(build_delivery_mark(7, "a/c", b"{}"))
    assert not known.remove_if_known(build_delivery_mark(7, "a/b", b"{ }"))
    assert known.remove_if_known(mark)
    assert not known.remove_if_known(mark)


def test_as_many_deliveries_as_packet_ids_are_recognised() -> None:
    """A repeated delivery is recognised, however many deliveries with other packet ids came after it."""
    marks = [build_delivery_mark(number, "a", b"{}") for number in range(1, 2**16)]
    known = Redeliveries([b"".join(marks)])
    assert all(known.remove_if_known(each) for each in marks)


def test_a_delivery_is_compared_with_the_newest_use_of_its_packet_id() -> None:
    """A repeated delivery is compared with the newest message that had its packet id."""
    first, second = build_delivery_mark(1, "a", b"1"), build_delivery_mark(1, "a", b"2")
    assert [Redeliveries([first, second]).remove_if_known(each) for each in (first, second)] == [False, True]
