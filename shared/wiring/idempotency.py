"""Idempotency services: stored keys of requests, and stored replies."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends

if TYPE_CHECKING:
    from shared.idempotency.keys import IdempotencyKeys
    from shared.idempotency.replies import IdempotentReplies


class IdempotencyServices:
    """Recognises repeated requests."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    @cached_property
    def keys(self) -> "IdempotencyKeys":
        """Store of idempotency keys."""
        from shared.idempotency.keys import IdempotencyKeys

        if self._backends.on_azure:
            from shared.backends.azure.cosmos_idempotency import CosmosIdempotencyStore

            return IdempotencyKeys(CosmosIdempotencyStore(self._backends.cosmos))
        from shared.backends.embedded.idempotency import SqliteIdempotencyStore

        return IdempotencyKeys(SqliteIdempotencyStore(self._backends.workspace_file))

    @cached_property
    def replies(self) -> "IdempotentReplies":
        """Store of replies to requests with an idempotency key."""
        from shared.idempotency.replies import IdempotentReplies

        if self._backends.on_azure:
            from shared.backends.azure.cosmos_idempotency import CosmosReplyStore

            return IdempotentReplies(CosmosReplyStore(self._backends.cosmos))
        from shared.backends.embedded.idempotency import SqliteReplyStore

        return IdempotentReplies(SqliteReplyStore(self._backends.workspace_file))
