"""Services for requests with an Idempotency-Key: stored keys, and stored replies."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends

if TYPE_CHECKING:
    from shared.idempotency.keys import IdempotencyKeys
    from shared.idempotency.replies import IdempotentReplies


class IdempotencyServices:
    """Recognises repeated requests by their Idempotency-Key."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    @cached_property
    def keys(self) -> "IdempotencyKeys":
        """Service that stores and compares idempotency keys."""
        from shared.idempotency.keys import IdempotencyKeys

        if self._backends.on_azure:
            from shared.backends.azure.cosmos_idempotency import CosmosIdempotencyStore

            return IdempotencyKeys(CosmosIdempotencyStore(self._backends.cosmos), runtime=self._backends.runtime)
        from shared.backends.embedded.idempotency import SqliteIdempotencyStore

        return IdempotencyKeys(SqliteIdempotencyStore(self._backends.workspace_file), runtime=self._backends.runtime)

    @cached_property
    def replies(self) -> "IdempotentReplies":
        """Service that stores replies to requests with an idempotency key."""
        from shared.idempotency.replies import IdempotentReplies

        if self._backends.on_azure:
            from shared.backends.azure.cosmos_idempotency import CosmosReplyStore

            return IdempotentReplies(CosmosReplyStore(self._backends.cosmos), runtime=self._backends.runtime)
        from shared.backends.embedded.idempotency import SqliteReplyStore

        return IdempotentReplies(SqliteReplyStore(self._backends.workspace_file), runtime=self._backends.runtime)
