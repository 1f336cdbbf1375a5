"""Adapters of the domains' ports."""
