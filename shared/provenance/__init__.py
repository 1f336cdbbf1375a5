"""The audit log: append-only, hash-chained records."""
