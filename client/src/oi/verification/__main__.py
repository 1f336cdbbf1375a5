"""``python -m oi.verification``: the offline verifier without the other commands and their libraries."""

import sys

from oi.verification.command import main

sys.exit(main(sys.argv[1:]))
