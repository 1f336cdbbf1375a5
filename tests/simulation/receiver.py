"""Simulated receiver of webhooks, which replaces outbound HTTP."""

import asyncio
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from shared.outbound.addresses import OutboundUrl
from shared.outbound.ports import OutboundFailedError, OutboundReply, OutboundRequest

if TYPE_CHECKING:
    from tests.simulation.world import World


class Receiver:
    """Receiver of the webhook messages that simulated processes send over an unreliable network.

    Attributes:
        received: bodies of the messages by their ids, in the order of their arrival.
    """

    def __init__(self) -> None:
        self.received: dict[str, list[Any]] = defaultdict(list)


class ReceiverConnection:
    """OutboundHttp implementation that sends every request to the receiver.

    Args:
        world: world of the receiver; None for a connection that sends nothing.
    """

    def __init__(self, world: "World | None") -> None:
        self._world = world

    async def require_allowed_host(self, url: OutboundUrl, *, https_only: bool = False) -> None:
        """Accept every address."""

    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Deliver a request once, twice or never, at random; after an injected error it may have been delivered."""
        world = self._world
        if world is None:
            raise OutboundFailedError("nothing is sent")
        faults, draw = world.faults, world.random.random
        await asyncio.sleep(draw() * (10 if draw() < faults.slow else 0.05))
        if draw() < faults.request_lost:
            raise OutboundFailedError("the request was lost")
        if draw() < faults.delivered_twice:
            self._receive(world, request)
        self._receive(world, request)
        if draw() < faults.reply_lost:
            raise OutboundFailedError("the reply was lost")
        status = 503 if draw() < faults.busy else 200
        return OutboundReply(status, {}, b"")

    def _receive(self, world: "World", request: OutboundRequest) -> None:
        message = request.headers["webhook-id"]
        world.trace(f"webhook {message} arrives")
        world.receiver.received[message].append(json.loads(request.body))

    async def close(self) -> None:
        """Do nothing: this fake connection holds no resources."""
