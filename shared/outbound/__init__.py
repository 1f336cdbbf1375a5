"""HTTP requests to URLs that users chose: rules against request forgery (SSRF), and the port of the HTTP client."""
