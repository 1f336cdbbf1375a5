"""``python -m shared.backends.embedded.provenance_walker FILE``: answer questions until nobody can ask any more."""

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from shared.backends.embedded.provenance import SqliteChainStore
from shared.backends.embedded.provenance_walk import question_of
from shared.provenance.parallel import verify_window

_NICENESS: Final = 5
"""Below the service, whose event loop goes first where processors are short."""


async def main(path: Path) -> None:
    """Walk the windows that are asked for; the end of the input is the end of the process that asks."""
    store = SqliteChainStore(path)
    for line in sys.stdin.buffer:
        answer = await verify_window(store, question_of(line))
        sys.stdout.buffer.write(json.dumps(asdict(answer)).encode() + b"\n")
        sys.stdout.buffer.flush()
    await store.close()


if __name__ == "__main__":
    os.nice(_NICENESS)
    asyncio.run(main(Path(sys.argv[1])))
