"""Adapters that implement the ports of the domains."""
