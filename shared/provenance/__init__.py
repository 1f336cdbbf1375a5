"""Audit log: append-only chains of records, each linked to the previous record by its hash."""
