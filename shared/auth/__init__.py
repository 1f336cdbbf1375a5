"""Authentication of callers, and their access rights."""
