"""Head items, compared with the records that they stand for: who can write to the store can change them, too."""

from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import parsed_if_canonical
from shared.provenance.hash_rule import LAST_SEQUENCE, record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Strays, Target, Tip
from shared.provenance.walk import Fault, forked, time_of


async def refuse_forged(store: ChainStore, chain: ChainKey, tip: Tip, instant: str) -> None:
    """Refuse to append from a head item that no append left.

    Its time is the earliest one of the next record, and goes into what is sealed. One that lies ahead of the clock is
    therefore believed only if the last record has it: the clock of another host may be ahead.

    Args:
        store: keeps the chain.
        chain: which chain.
        tip: as the store gave it.
        instant: the current one, in the records' own format.

    Raises:
        WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE``; the head item is forged; the store's UNAVAILABLE.
    """
    ahead = tip.timestamp > instant
    if not 0 <= tip.sequence < LAST_SEQUENCE or (ahead and await last_time(store, chain, tip) != tip.timestamp):
        detail = "The chain's head item is not the one of its last record; verify the chain."
        raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail)


async def time_fault(store: ChainStore, chain: ChainKey, tip: Tip) -> Fault | None:
    """Return the fault of a head item with another time than its record."""
    if not tip.sequence or await last_time(store, chain, tip) == tip.timestamp:
        return None
    last = record_id(tip.sequence)
    return Fault(last, f"{last} does not have the time that the head item names")


async def stray_fault(store: ChainStore, chain: ChainKey, genesis: str, tip: Tip) -> Fault | None:
    """Return the fault of records that are, or may be, the chain's, and that its head item does not lead to."""
    strays = await store.strays(chain, genesis) if isinstance(store, Strays) else ()
    for record in strays:
        value = parsed_if_canonical(record.canonical)
        if type(value) is dict and value.get("PreviousHash") == genesis:
            here = record_id(record.sequence)
            if tip.sequence:
                return Fault(record.hash, forked(1))
            return Fault(here, f"{here} is there without the head item of this chain")
    for record in strays:
        if not tip.sequence and record.sequence > 1 and _may_be_of(chain, record):
            here = record_id(record.sequence)
            return Fault(here, f"{here} is there without a head item and a first record, and may be of this chain")
    return None


def _may_be_of(chain: ChainKey, record: ChainRecord) -> bool:
    """Tell whether the content of a record leaves it open that it is a chain's: corrections name their scope."""
    value = parsed_if_canonical(record.canonical)
    if type(value) is dict and "ScopeKey" in value:
        return chain == (Target.DOMAIN_AMENDMENTS, value["ScopeKey"])
    return type(value) is not dict or chain.target is not Target.DOMAIN_AMENDMENTS


async def last_time(store: ChainStore, chain: ChainKey, tip: Tip) -> str:
    """Return the time in the content of the record that a head item names, empty without."""
    page = await store.read(chain, tip.sequence - 1, limit=1, max_bytes=1)
    return time_of(page.records[0]) if page.records and page.records[0].sequence == tip.sequence else ""
