"""Command that replaces the private key which signs checkpoints: ``python -m local.checkpoint_key rotate``."""

import argparse
import os
import sys
from pathlib import Path

from shared.backends.embedded.key_files import get_public_key_folder, rotate_checkpoint_key


def main(arguments: list[str] | None = None) -> int:
    """Replace the private key that signs checkpoints, and return the exit code.

    The exit code is 1 if the data directory is missing or cannot be written, or the key file is invalid; else 0.
    """
    parser = argparse.ArgumentParser(
        prog="python -m local.checkpoint_key", description="Replace the key that signs checkpoints."
    )
    parser.add_argument("verb", choices=["rotate"], help="create a new key; checkpoints of the old key remain trusted")
    parser.add_argument("--data-dir", type=Path, help="folder of all state (DATA_DIR; .data)")
    folder = Path(parser.parse_args(arguments).data_dir or os.environ.get("DATA_DIR") or ".data")
    if not folder.is_dir():
        sys.stderr.write(f"{folder} is not a folder; name the data directory of the host with --data-dir (DATA_DIR)\n")
        return 1
    path = folder / "checkpoint-key.pem"
    try:
        name = rotate_checkpoint_key(path)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{path} is a new key; {get_public_key_folder(path)}/{name}.pem verifies its signatures\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
