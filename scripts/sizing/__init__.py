"""Model that estimates the sizes of a deployment's Azure services, monthly quantities and costs."""
