"""The AuditLog port over the engine."""

from collections.abc import Mapping
from typing import Any

from shared.provenance.appender import Appended
from shared.provenance.chain_log import ChainLog
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import event_draft, opened


class EventLog:
    """Appends events to chains; what other domains see of the audit log.

    Args:
        log: the engine.
    """

    def __init__(self, log: ChainLog) -> None:
        self.log = log

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append one event, or return the record that this append id already made."""
        appended = await self.write(ChainKey(target, scope_key), user_id, event, append_id=append_id)
        return opened(appended.record.canonical, appended.record.hash)

    async def write(self, chain: ChainKey, user_id: str, event: Mapping[str, Any], *, append_id: str = "") -> Appended:
        """Append one event.

        Args:
            chain: which chain.
            user_id: the acting principal.
            event: see :meth:`AuditLog.append`; other members are dropped.
            append_id: the same id again returns the record already stored; empty for an event known to be new.

        Raises:
            WorkspaceError: of the body (INVALID, TOO_LARGE), and what :meth:`ChainLog.append` raises.
        """
        return await self.log.append(chain, event_draft(user_id, event), append_id=append_id)

    async def close(self) -> None:
        """Finish the appends that were taken, and close the store."""
        await self.log.close()
