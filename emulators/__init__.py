"""Local replacements for Azure services: Cosmos DB, Data Explorer, Durable Functions and Web PubSub."""
