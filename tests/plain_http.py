"""TLS context that is never used, for HTTP clients in tests that use only plain HTTP."""

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Without it each client of httpx loads all root certificates, which takes 20 to 40 ms of CPU time."""
