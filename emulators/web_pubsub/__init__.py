"""Emulator of Azure Web PubSub in one process: REST API for servers, WebSocket clients, and events to an event handler.

The emulator differs from the Azure service; README.md lists the differences.
"""
