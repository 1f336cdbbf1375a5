"""Tests of continuation tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data_stores.continuation import ContinuationTokens, build_signing_key_function
from shared.data_stores.models import MISSING, AccountContainer, DatabaseAddress, PartitionValue, Table
from shared.errors import WorkspaceError

NAMES = st.text(max_size=4)
VALUES = st.one_of(st.text(max_size=4), st.integers(-3, 3), st.booleans(), st.none(), st.just(MISSING))
LISTS = st.tuples(NAMES, NAMES, NAMES, VALUES, st.booleans())

type ListFilter = tuple[str, str, str, PartitionValue, bool]


def get_table(listed: ListFilter) -> Table:
    """Return the table whose list is read."""
    return Table(DatabaseAddress(listed[0], listed[1]), AccountContainer(listed[2], "/line"))


def build_token_signer(secret: str) -> ContinuationTokens:
    """Return an object that signs and verifies continuation tokens with the given secret."""
    return ContinuationTokens(build_signing_key_function(secret))


OURS = build_token_signer("0123456789abcdef0123456789abcdef")


def is_same_list(one: ListFilter, other: ListFilter) -> bool:
    """Return whether two lists are equal, also in types; the partition keys True and 1 differ."""
    whole = one[4] and other[4]
    keys = whole or (one[3] == other[3] and isinstance(one[3], bool) == isinstance(other[3], bool))
    return one[:3] == other[:3] and one[4] == other[4] and keys


@given(LISTS, LISTS, st.text(st.characters(codec="utf-8"), max_size=40))
async def test_a_continuation_token_is_valid_only_for_its_list(
    one: ListFilter, other: ListFilter, position: str
) -> None:
    """A continuation token returns its position for its own list; other lists reject it."""
    token = await OURS.create_token(get_table(one), one[3], position, all_partitions=one[4])
    assert await OURS.verify_and_read_position(get_table(one), one[3], token, all_partitions=one[4]) == position
    if is_same_list(one, other):
        assert (
            await OURS.verify_and_read_position(get_table(other), other[3], token, all_partitions=other[4]) == position
        )
    else:
        with pytest.raises(WorkspaceError, match="continuationToken"):
            await OURS.verify_and_read_position(get_table(other), other[3], token, all_partitions=other[4])


@given(st.text(max_size=60))
async def test_a_text_that_is_not_a_continuation_token_is_rejected(text: str) -> None:
    """A text that is not a continuation token is rejected with the field's name."""
    with pytest.raises(WorkspaceError, match="continuationToken"):
        await OURS.verify_and_read_position(get_table(("a", "b", "c", "x", False)), "x", text, all_partitions=False)


async def test_a_changed_continuation_token_is_rejected() -> None:
    """A token with one changed character is rejected."""
    place = get_table(("a", "b", "c", "x", False))
    token = await OURS.create_token(place, "x", "position", all_partitions=False)
    for index, character in enumerate(token):
        for changed in {"A", "B", "_", "="} - {character}:
            with pytest.raises(WorkspaceError):
                await OURS.verify_and_read_position(
                    place, "x", token[:index] + changed + token[index + 1 :], all_partitions=False
                )


async def test_a_continuation_token_requires_the_secret_that_signed_it() -> None:
    """A token is valid only with the secret that signed it; a short secret is rejected."""
    place = get_table(("a", "b", "c", "x", False))
    token = await OURS.create_token(place, "x", "p", all_partitions=False)
    assert (
        await build_token_signer("0123456789abcdef0123456789abcdef").verify_and_read_position(
            place, "x", token, all_partitions=False
        )
        == "p"
    )
    with pytest.raises(WorkspaceError, match="continuationToken"):
        await build_token_signer("another secret of 32 characters.").verify_and_read_position(
            place, "x", token, all_partitions=False
        )
    with pytest.raises(WorkspaceError, match="CONTINUATION_SECRET"):
        await build_token_signer("short").create_token(place, "x", "p", all_partitions=False)
