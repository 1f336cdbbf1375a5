"""A stand-in for Azure Web PubSub: its data plane, its clients' protocols and its event handlers, in one process.

It is not the Azure service; docs/web-pubsub.md says what it leaves out.
"""
