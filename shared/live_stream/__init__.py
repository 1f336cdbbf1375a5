"""Live stream over WebSocket: admission of listeners, publishing of telemetry messages, and replay of earlier ones."""
