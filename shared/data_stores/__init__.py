"""Cosmos DB accounts of the workspace (data stores): containers, and documents that the API exposes as tables."""
