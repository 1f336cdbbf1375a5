"""Sign-ins of simulated members, with which they sign decisions."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tests.simulation.client import send_until_final
from tests.simulation.scheduler import MICROSECONDS
from tests.simulation.world import ApiReply, World

_KEYS: Final = "workspace/api/keys"
_IN_FORCE_SECONDS: Final = 15
"""Time after which all processes know a new API key, as the documentation says."""

_CERTAIN_AGE: Final = 290 * MICROSECONDS
"""Age of a sign-in up to which it can sign; the clocks of two processes differ by up to one second."""


@dataclass(frozen=True)
class SignIn:
    """New token of a member.

    Attributes:
        world: world of the member.
        headers: headers of requests with the token.
        at: time before its issue.
        clock_shift: shift of the simulated clocks at that time.
    """

    world: World
    headers: dict[str, str]
    at: int
    clock_shift: timedelta

    def may_be_rejected(self, reply: ApiReply) -> bool:
        """Return whether a reply rejects the signature because of the token's age or the member's earlier attempts."""
        is_old = self.world.scheduler.now > self.at + _CERTAIN_AGE or self.world.clock_shift != self.clock_shift
        return reply.code == "SIGNATURE_LOCKED" or (reply.status == 401 and is_old)


class SignIns:
    """API keys with which members sign in; in most worlds, no member signs in.

    Args:
        world: world of the members.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._share = world.random.choice((0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5))
        self._secrets: dict[str, str] = {}

    async def sign_in_sometimes(self, member: str) -> SignIn | None:
        """Return a new sign-in of a member; None if the member does not sign in, or a request failed."""
        world = self._world
        if world.random.random() >= self._share:
            return None
        if member not in self._secrets:
            name = f"sign-in of {member}"
            made = await send_until_final(world, member, "POST", _KEYS, {"name": name}, key=name)
            if made is None:
                return None
            world.require(made.status == 201, f"the {name} got {made.status} {made.reply.body!r}")
            await world.sleep(_IN_FORCE_SECONDS)
            self._secrets[member] = made.json["apiKey"]
        at, shift = world.scheduler.now, world.clock_shift
        headers = {"authorization": f"Bearer {self._secrets[member]}"}
        issued = await send_until_final(world, "", "GET", f"{_KEYS}/jwt", headers=headers)
        if issued is None:
            return None
        world.require(issued.status == 200, f"a sign-in of {member} got {issued.status} {issued.reply.body!r}")
        return SignIn(world, {"authorization": f"Bearer {issued.json['Token']}"}, at, shift)
