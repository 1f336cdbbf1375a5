"""GraphQL interface: read access to the workspace catalog, and execution of its warm queries (saved KQL queries)."""
