"""Tests of the API Explorer and GraphiQL in a real browser."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.pages.browser import CHROMIUM, NO_CHROMIUM, visit
from tests.service.local_service import Service

BUILT = (Path(__file__).parents[2] / "static" / "graphiql" / "index.html").is_file()

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
    pytest.mark.skipif(not BUILT, reason="the pages are not built: make assets needs npm"),
]


def _request_token(service: Service) -> str:
    return service.caller("viewer@t").headers["Authorization"].removeprefix("Bearer ")


def test_call_by_clicking_in_the_explorer(service: Service) -> None:
    """A call by mouse succeeds without requests to other origins or errors, and the token is not shown."""
    token = _request_token(service)
    with visit(f"{service.url}/oi-api/explorer") as visited:
        page = visited.page
        page.fill("#token", token)
        page.click("button[type=submit]")
        page.locator(".opblock", has_text="whoami").first.click()
        page.locator("button.execute").first.click()
        status = page.locator(".live-responses-table .response .response-col_status").first
        status.wait_for()
        assert status.inner_text().startswith("200")
        assert "viewer@t" in page.locator(".live-responses-table").first.inner_text()
        assert token not in page.locator("#explorer").inner_text()
    assert visited.origins <= {urlsplit(service.url).netloc, ""}
    assert visited.complaints == []


def test_a_rejected_token_is_shown_on_the_page(service: Service) -> None:
    """The page shows the service's message about an invalid token."""
    with visit(f"{service.url}/oi-api/explorer") as visited:
        visited.page.fill("#token", "nonsense")
        visited.page.click("button[type=submit]")
        visited.page.locator("#problem:not(:empty)").wait_for()
        assert "UNAUTHENTICATED" in visited.page.locator("#problem").inner_text()


def test_query_by_clicking_in_graphiql(service: Service) -> None:
    """A query by mouse returns data without requests to other origins, errors or stored data."""
    with visit(f"{service.url}/v1/plant-t/graphiql") as visited:
        page = visited.page
        page.fill("#token", service.key("viewer@t"))
        page.click("button[type=submit]")
        page.locator(".graphiql-query-editor .view-line", has_text="workspace").wait_for()
        page.locator(".graphiql-execute-button").click()
        page.locator(".graphiql-response", has_text=re.compile("Test.plant")).wait_for()
        assert page.evaluate("window.localStorage.length") == 0
    assert visited.origins <= {urlsplit(service.url).netloc, ""}
    assert visited.complaints == []
