"""``python -m oi``: the command ``oi``."""

from oi.cli.main import run

run()
