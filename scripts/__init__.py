"""Scripts for developers and operators, run by hand or by make."""
