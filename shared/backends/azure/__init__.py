"""Adapters for Azure services; the only code that imports Azure SDKs.

Each module implements one port (interface of a domain), because ``shared.wiring`` imports only the adapters that a
request needs.
"""
