"""GraphQL interface: queries of the workspace, and execution of its warm queries."""
