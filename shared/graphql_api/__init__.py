"""The GraphQL interface: reads of the workspace, and the execution of its warm queries."""
