"""Import of earlier telemetry: rows of uploaded files are converted to messages, and each message is stored once."""
