"""OpenAPI 3.1, made of the operations, their models and the catalog, as far as a caller may use them."""
