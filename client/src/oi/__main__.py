"""Run the command ``oi`` with ``python -m oi``."""

from oi.cli.main import run

run()
