"""Adapters over SQLite and files: durable, and safe for several processes at once."""
