"""Data stores (Cosmos DB accounts) of the workspace: documents, and containers, which the API can expose as tables."""
