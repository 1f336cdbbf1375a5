"""Audit log of append-only, hash-chained records."""
