"""OAuth 2.1 authorization server: clients, consents, and the tokens that standard tools request."""
