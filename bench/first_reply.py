"""Time of one start of the app: ``python -m bench.first_reply PATH`` prints the seconds until import and reply.

The request pipeline is called without the worker, whose start is up to the platform. ``BENCH_TOKEN`` is the caller's
token.
"""

import asyncio
import json
import os
import sys
import time

STARTED = time.perf_counter()


async def _send_request(path: str) -> int:
    from functions.http_blueprint import get_pipeline  # noqa: PLC0415  its import is timed
    from shared.http.messages import Request  # noqa: PLC0415  the same

    headers = {"authorization": f"Bearer {os.environ['BENCH_TOKEN']}"}
    return (await get_pipeline().serve(Request("GET", path, "", headers, b""))).status


def main(path: str) -> None:
    """Import the app, send one request, and print the two times and the reply's status."""
    import function_app  # noqa: F401, PLC0415  its import is timed

    imported = time.perf_counter()
    status = asyncio.run(_send_request(path))
    print(json.dumps({"import": imported - STARTED, "reply": time.perf_counter() - STARTED, "status": status}))


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    # Exit without closing resources: the process ends anyway.
    os._exit(0)
