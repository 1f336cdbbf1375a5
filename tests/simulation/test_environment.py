"""Tests of the functions that simulated worlds replace."""

from azure.core.utils import CaseInsensitiveDict

from tests.simulation.environment import prepare_process


def test_copied_headers_are_equal() -> None:
    """Headers of the SDK keep names, order and the last value of each name, whose letters can be of any case."""
    prepare_process()
    headers = CaseInsensitiveDict({"Accept": "a", "x-ms-date": "b"}, Etag="c")
    headers.update([("ACCEPT", "d")])
    headers.update(CaseInsensitiveDict({"x-new": "e"}))
    assert list(headers.items()) == [("ACCEPT", "d"), ("x-ms-date", "b"), ("Etag", "c"), ("x-new", "e")]
    assert dict(headers) == dict(headers.items())
    assert headers["accept"] == "d"
