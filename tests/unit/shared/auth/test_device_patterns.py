"""Tests of the compiled patterns of device ids."""

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from shared.auth.device_patterns import build_device_id_matcher, compile_device_patterns

TEXTS = st.text("ab*?[]!-|()\\\n", max_size=6)


@given(st.lists(TEXTS, max_size=4).map(tuple), TEXTS)
def test_a_device_id_matches_the_expression_if_it_matches_a_pattern(patterns: tuple[str, ...], device: str) -> None:
    """The compiled expression matches the device ids that match at least one of the patterns."""
    is_matching = compile_device_patterns(patterns).match(device) is not None
    assert is_matching == any(fnmatchcase(device, pattern) for pattern in patterns)


def test_a_check_remembers_the_result_for_each_device() -> None:
    """A device id is tested once, also if it matches no pattern and many messages have it."""
    check = build_device_id_matcher(("rig-*", "press-?"))
    assert [check(device) for device in ("rig-1", "other", "rig-1", "other", "press-12")] == [True, False] * 2 + [False]
    assert check.cache_info().misses == 3  # type: ignore[attr-defined]
