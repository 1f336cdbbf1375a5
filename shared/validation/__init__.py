"""Rules for names, ids and redirect URIs that callers send, and messages about invalid values."""
