"""Tests of the team member whose request is processed."""

import asyncio

from shared.fair_use.acting_member import acting_member, use_acting_member


async def test_the_acting_member_applies_to_a_block_and_its_tasks() -> None:
    """Tasks of a block see the block's acting member, and the earlier one is restored at the end of the block."""

    async def get_member() -> str:
        return acting_member.get()

    with use_acting_member("ann"):
        with use_acting_member("bob"):
            task = asyncio.create_task(get_member())
        assert acting_member.get() == "ann"
    assert (await task, acting_member.get()) == ("bob", "")
