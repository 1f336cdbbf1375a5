"""Run the offline verifier with ``python -m oi.verification``, without the other commands and their libraries."""

import sys

from oi.verification.command import main

sys.exit(main(sys.argv[1:]))
