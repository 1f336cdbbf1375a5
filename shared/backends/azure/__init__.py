"""Adapters for Azure services; the only code that imports Azure SDKs."""
