"""HTTP server of the local host: connections, limits, routes, error replies and stored files."""
