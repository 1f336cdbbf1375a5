"""HTTP requests to URLs that users chose: rules for addresses against request forgery, and the client's port."""
