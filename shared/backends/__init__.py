"""Adapters that implement the ports (interfaces) of the domains: over SQLite and files, and over Azure services."""
