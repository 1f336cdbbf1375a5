"""Adapters for Azure services; the only code that imports Azure SDKs.

Each port has a module of its own, because ``shared.wiring`` imports only the adapters that a request needs.
"""
