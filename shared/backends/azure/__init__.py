"""Adapters over Azure services; the only code that imports Azure SDKs."""
