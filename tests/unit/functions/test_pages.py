"""Tests of the security policy of the web console's files."""

from typing import cast

from functions import pages
from shared.http.operations import Call
from shared.settings import Settings


def test_the_console_may_upload_files_to_the_storage_account() -> None:
    """The console's security policy allows requests to the storage account, to which upload links lead on Azure."""
    settings = Settings.read({"BLOB_ENDPOINT": "https://stdata.blob.core.windows.net/"})
    assert "connect-src 'self' https://stdata.blob.core.windows.net;" in pages._build_console_content_security_policy(
        settings
    )


def test_the_console_may_only_call_the_service_by_default() -> None:
    """Without other services, the console's security policy allows only requests to the service."""
    assert "connect-src 'self';" in pages._build_console_content_security_policy(Settings.read({}))


async def test_redirects_have_the_documented_status() -> None:
    """The documentation of a redirect to the console lists the status with which the operation replies."""
    redirects = [each for each in pages.GROUP.operations if each.route in {"", "console"}]
    replies = [await each.handler(cast("Call", None)) for each in redirects]
    documented = [[reply.status for reply in each.docs.replies] for each in redirects]
    assert documented == [[reply.status] for reply in replies] == [[302], [308]]
