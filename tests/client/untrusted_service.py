"""Service with a TLS certificate that the client does not trust."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tests.unit.shared.backends.test_outbound_http import create_certificate


@contextmanager
def serve_with_untrusted_certificate(folder: Path) -> Iterator[str]:
    """Context manager: serve https with a self-signed certificate; yield the address of the service.

    Args:
        folder: folder for the files of the certificate.
    """
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = create_certificate(folder, "plant.example").wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
