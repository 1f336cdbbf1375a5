"""Model that estimates Azure service sizes, monthly quantities and costs: ``python -m scripts.sizing --help``."""
