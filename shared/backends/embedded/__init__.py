"""Adapters over SQLite and files: durable, and safe for several processes that use the same files.

Each module implements one port (interface of a domain), so that ``shared.wiring`` can import only the adapters that a
request needs.
"""
