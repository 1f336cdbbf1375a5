"""Command that calls ``/healthz`` repeatedly: ``python -m bench.healthz_probe URL``.

Each call prints a line with its start (``time.monotonic``) and its duration, both in seconds.
"""

import http.client
import sys
import time
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.002


def main(url: str) -> None:
    """Call ``/healthz`` with pauses of 2 ms until the process is terminated."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    while True:
        begun = time.monotonic()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        print(begun, time.monotonic() - begun, flush=True)
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1])
