"""OpenAPI 3.1 document, built from the operations, their models and the catalog for one caller."""
