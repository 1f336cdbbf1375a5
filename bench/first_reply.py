"""Command that measures one start of the app: ``python -m bench.first_reply PATH``.

The command prints the seconds until the app is imported and until the first reply. It calls the request pipeline
directly, without a Functions worker, because Azure controls the worker's start. The variable ``BENCH_TOKEN`` contains
the caller's token.
"""

import asyncio
import json
import os
import sys
import time

STARTED = time.perf_counter()


async def _call_pipeline_and_get_status(path: str) -> int:
    from functions.http_blueprint import get_pipeline  # noqa: PLC0415  its import is timed
    from shared.http.messages import Request  # noqa: PLC0415  the same

    headers = {"authorization": f"Bearer {os.environ['BENCH_TOKEN']}"}
    return (await get_pipeline().serve(Request("GET", path, "", headers, b""))).status


def main(path: str) -> None:
    """Import the app, call its pipeline with one request, and print the result as a JSON object."""
    import function_app  # noqa: F401, PLC0415  its import is timed

    imported = time.perf_counter()
    status = asyncio.run(_call_pipeline_and_get_status(path))
    print(json.dumps({"import": imported - STARTED, "reply": time.perf_counter() - STARTED, "status": status}))


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.flush()
    # Exit without closing resources: the process ends anyway.
    os._exit(0)
