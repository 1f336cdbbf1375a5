"""Rules for names that callers send, and messages about invalid values."""
