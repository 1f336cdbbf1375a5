"""Client for asyncio; `python client/scripts/make_sync.py` derives the package ``oi._sync`` from this one."""
