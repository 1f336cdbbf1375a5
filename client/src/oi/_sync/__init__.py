"""Client without asyncio, derived from ``oi._async`` by scripts/make_sync.py."""
