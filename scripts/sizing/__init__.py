"""Model of the sizes, quantities and costs of a deployment: ``python -m scripts.sizing --help``."""
