"""Emulator of Azure Web PubSub: its data plane, client protocols and event handlers in one process.

It is not the Azure service; README.md lists the differences.
"""
