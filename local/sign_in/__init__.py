"""Sign-in to the web console of the local host with one-time codes."""
