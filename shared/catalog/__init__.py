"""The workspace catalog: declared and API-created items, and the rules for applying a workspace document."""
