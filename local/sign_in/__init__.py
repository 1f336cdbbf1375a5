"""Sign-in to the local host's web console with one-time codes."""
