"""Adapters over SQLite and files: durable, and safe for several processes at once.

Each port has a module of its own, because ``shared.wiring`` imports only the adapters that a request needs.
"""
