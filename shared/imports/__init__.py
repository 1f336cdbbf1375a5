"""Import of earlier telemetry: the rows of uploaded files become stored messages, each of them once."""
