"""Adapters for Azure services; the only code that imports Azure SDKs.

Each module implements one port (interface of a domain), so that ``shared.wiring`` can import only the adapters that a
request needs.
"""
