"""One host for a data directory: the file of its query engine cannot be shared."""

import asyncio
import fcntl
import time
from pathlib import Path
from typing import TextIO

from local.errors import StartError

_WAIT_SECONDS = 6.0
"""A predecessor that was told to stop has ended by then."""

_POLL_SECONDS = 0.1


async def claim_data_dir(data_dir: Path) -> TextIO:
    """Claim a data directory until the file that is returned is closed, or the process ends however it ends.

    Raises:
        StartError: another host has claimed it and does not end.
    """
    claim = (data_dir / "host.lock").open("a")
    deadline = time.monotonic() + _WAIT_SECONDS
    while not _locked(claim):
        if time.monotonic() > deadline:
            claim.close()
            raise StartError(
                f"another host runs over the data directory {data_dir}, and only one can have its query engine; "
                "end that host, or give this one a folder of its own with --data-dir (DATA_DIR)"
            )
        await asyncio.sleep(_POLL_SECONDS)
    return claim


def _locked(claim: TextIO) -> bool:
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
