"""Continuation tokens: what was not made for a list does not continue it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data_stores.continuation import ContinuationTokens, derive_secret
from shared.data_stores.models import MISSING, AccountContainer, DatabasePlace, PartitionValue, Table
from shared.errors import WorkspaceError

NAMES = st.text(max_size=4)
VALUES = st.one_of(st.text(max_size=4), st.integers(-3, 3), st.booleans(), st.none(), st.just(MISSING))
LISTS = st.tuples(NAMES, NAMES, NAMES, VALUES, st.booleans())

type Listed = tuple[str, str, str, PartitionValue, bool]


def table(listed: Listed) -> Table:
    """Return the table of a list."""
    return Table(DatabasePlace(listed[0], listed[1]), AccountContainer(listed[2], "/line"))


def made_with(secret: str) -> ContinuationTokens:
    """Return what makes tokens under a secret."""
    return ContinuationTokens(derive_secret(secret))


OURS = made_with("0123456789abcdef0123456789abcdef")


def same(one: Listed, other: Listed) -> bool:
    """Return whether two lists are one: True is not 1, and the whole table has no partition key."""
    whole = one[4] and other[4]
    keys = whole or (one[3] == other[3] and isinstance(one[3], bool) == isinstance(other[3], bool))
    return one[:3] == other[:3] and one[4] == other[4] and keys


@given(LISTS, LISTS, st.text(st.characters(codec="utf-8"), max_size=40))
async def test_a_token_continues_its_own_list_only(one: Listed, other: Listed, position: str) -> None:
    """The position comes back for the list that it was made for; any other list refuses the token."""
    token = await OURS.create(table(one), one[3], position, all_partitions=one[4])
    assert await OURS.read(table(one), one[3], token, all_partitions=one[4]) == position
    if same(one, other):
        assert await OURS.read(table(other), other[3], token, all_partitions=other[4]) == position
    else:
        with pytest.raises(WorkspaceError, match="continuationToken"):
            await OURS.read(table(other), other[3], token, all_partitions=other[4])


@given(st.text(max_size=60))
async def test_no_text_is_taken_for_a_token(text: str) -> None:
    """Whatever a caller sends is refused by name."""
    with pytest.raises(WorkspaceError, match="continuationToken"):
        await OURS.read(table(("a", "b", "c", "x", False)), "x", text, all_partitions=False)


async def test_every_changed_character_is_noticed() -> None:
    """A token has one text."""
    place = table(("a", "b", "c", "x", False))
    token = await OURS.create(place, "x", "position", all_partitions=False)
    for index, character in enumerate(token):
        for changed in {"A", "B", "_", "="} - {character}:
            with pytest.raises(WorkspaceError):
                await OURS.read(place, "x", token[:index] + changed + token[index + 1 :], all_partitions=False)


async def test_instances_share_their_secret() -> None:
    """A token holds where the secret is the same, and nowhere else; too short a secret makes none."""
    place = table(("a", "b", "c", "x", False))
    token = await OURS.create(place, "x", "p", all_partitions=False)
    assert await made_with("0123456789abcdef0123456789abcdef").read(place, "x", token, all_partitions=False) == "p"
    with pytest.raises(WorkspaceError, match="continuationToken"):
        await made_with("another secret of 32 characters.").read(place, "x", token, all_partitions=False)
    with pytest.raises(WorkspaceError, match="CONTINUATION_SECRET"):
        await made_with("short").create(place, "x", "p", all_partitions=False)
