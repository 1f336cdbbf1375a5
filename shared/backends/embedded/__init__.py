"""Adapters over SQLite and files: durable, and safe for several processes that use the same files.

Each module implements one port (interface of a domain), because ``shared.wiring`` imports only the adapters that a
request needs.
"""
