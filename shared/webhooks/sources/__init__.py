"""Sources of webhook events. Each source derives events from stored changes, so that a crash loses no event."""
