"""Sources of webhook events: each derives events from stored changes, so that a crash loses no event."""
