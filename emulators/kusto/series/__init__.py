"""Mathematics of the KQL series functions with NumPy; each function computes the outputs for one series."""
