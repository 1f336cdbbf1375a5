"""Offline verification of audit exports and audit bundles; shares no code with the service that wrote the records."""
