"""Tests of the API Explorer and GraphiQL in a real browser."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.pages.axe import AXE, find_accessibility_violations
from tests.pages.browser import CHROMIUM, NO_CHROMIUM, open_page
from tests.service.local_service import Service

BUILT = (Path(__file__).parents[2] / "static" / "graphiql" / "index.html").is_file()

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
    pytest.mark.skipif(not BUILT, reason="the pages are not built; run `make assets` (needs npm)"),
]


_LATER = "2099-01-01T00:00:00Z"

THIRD_PARTY_RULES = frozenset({"color-contrast", "nested-interactive"})
"""Rules of axe that elements of GraphiQL violate: faint text, and tabs that contain buttons."""
LONG_NUMBER = '{"data": {"serial": 9007199254740993}}'
"""Reply with a whole number beyond 2^53, which JavaScript rounds to an even number."""


def _request_token(service: Service, scopes: str | None = None) -> str:
    return service.create_client("viewer@t", scopes).headers["Authorization"].removeprefix("Bearer ")


def test_an_operation_is_called_by_mouse_in_the_explorer(service: Service) -> None:
    """A call by mouse in the API Explorer succeeds without errors, and the page does not show the token."""
    # Swagger UI needs CPU seconds for all operations of a viewer, so the token has one right.
    token = _request_token(service, "Workspace.Catalog.Read")
    with open_page(f"{service.url}/oi-api/explorer") as visited:
        page = visited.page
        page.fill("#credential", token)
        page.click("button[type=submit]")
        page.locator(".opblock", has_text="whoami").first.locator(".opblock-summary-control").click()
        execute = page.locator("button.execute").first
        execute.wait_for()
        with page.expect_response(re.compile("/whoami$")):
            execute.click()
        status = page.locator(".live-responses-table .response .response-col_status").first
        status.wait_for()
        assert status.inner_text().startswith("200")
        assert "viewer@t" in page.locator(".live-responses-table").first.inner_text()
        assert token not in page.locator("#explorer").inner_text()
    assert visited.origins <= {urlsplit(service.url).netloc, ""}
    assert visited.complaints == []


def test_a_rejected_token_is_shown_on_the_page(service: Service) -> None:
    """If a token is invalid, the page shows the service's message."""
    with open_page(f"{service.url}/oi-api/explorer") as visited:
        visited.page.fill("#credential", "nonsense")
        visited.page.click("button[type=submit]")
        visited.page.locator("#problem:not(:empty)").wait_for()
        assert "UNAUTHENTICATED" in visited.page.locator("#problem").inner_text()


def test_explorer_exchanges_an_api_key(service: Service) -> None:
    """The API Explorer exchanges an API key for a token; only this exchange contains the key."""
    key = service.read_api_key("viewer@t")
    sent: dict[str, str] = {}
    with open_page(f"{service.url}/oi-api/explorer") as visited:
        page = visited.page
        page.on("request", lambda each: sent.update({urlsplit(each.url).path: each.headers.get("authorization", "")}))
        page.fill("#credential", key)
        page.click("button[type=submit]")
        page.locator(".opblock", has_text="whoami").first.wait_for()
        assert [path for path, credential in sent.items() if key in credential] == ["/workspace/api/keys/jwt"]
        assert sent["/oi-api/openapi"].startswith("Bearer ey")
    assert visited.complaints == []


def test_explorer_uses_the_session_and_theme_of_the_console(service: Service) -> None:
    """The API Explorer uses the session and theme of the console, links to the console, and is accessible."""
    session = {"token": _request_token(service), "expiresAt": _LATER, "until": _LATER}
    with open_page(f"{service.url}/oi-api/explorer") as visited:
        page = visited.page
        page.evaluate("value => sessionStorage.setItem('workspace-console', JSON.stringify(value))", session)
        page.evaluate("localStorage.setItem('workspace-console-theme', 'dark')")
        page.reload()
        page.locator(".opblock", has_text="whoami").first.wait_for()
        assert "Viewer" in page.locator("#signed-in").inner_text()
        assert not page.locator("#credential").is_visible()
        assert page.locator("html[data-theme=dark].dark-mode").count() == 1
        page.locator(".opblock", has_text="whoami").first.locator(".opblock-summary-control").click()
        page.locator("button.execute").first.wait_for()
        if AXE.is_file():
            # Swagger UI has select elements without names, and dark responses with too little contrast.
            assert find_accessibility_violations(page, excluded="#explorer") == []
        assert page.get_by_role("link", name="Back to the console").get_attribute("href") == "/console/#/developers"
        page.get_by_role("button", name="Use another credential").click()
        assert page.locator("#credential").is_visible()
    assert visited.complaints == []


def test_explorer_ignores_an_expired_session(service: Service) -> None:
    """If the console's session has expired, the API Explorer requests a credential and does not send the old token."""
    with open_page(f"{service.url}/oi-api/explorer") as visited:
        page = visited.page
        stored = {"token": "old", "expiresAt": "2020-01-01T00:00:00Z", "until": "2020-01-01T00:00:00Z"}
        page.evaluate("value => sessionStorage.setItem('workspace-console', JSON.stringify(value))", stored)
        page.reload()
        page.locator("#credential").wait_for()
        assert page.locator("#problem").inner_text() == ""
    assert visited.complaints == []


@pytest.mark.skipif(not AXE.is_file(), reason="axe is not installed; run `make assets` (needs npm)")
def test_graphiql_is_accessible(service: Service) -> None:
    """GraphiQL's page is accessible, except for known findings in its third-party editor."""
    with open_page(f"{service.url}/v1/plant-t/graphiql") as visited:
        page = visited.page
        page.locator("#token").wait_for()
        assert find_accessibility_violations(page) == []
        page.fill("#token", service.read_api_key("viewer@t"))
        page.click("button[type=submit]")
        page.locator(".graphiql-query-editor .view-line", has_text="workspace").wait_for()
        assert find_accessibility_violations(page, excluded="#graphiql") == []
        assert {each.split(":")[0] for each in find_accessibility_violations(page)} <= THIRD_PARTY_RULES
    assert visited.complaints == []


def test_a_query_is_run_by_mouse_in_graphiql(service: Service) -> None:
    """A query by mouse in GraphiQL shows the reply with all digits of its numbers, and the browser stores nothing."""
    with open_page(f"{service.url}/v1/plant-t/graphiql") as visited:
        page = visited.page
        page.fill("#token", service.read_api_key("viewer@t"))
        page.click("button[type=submit]")
        page.locator(".graphiql-query-editor .view-line", has_text="workspace").wait_for()
        page.locator(".graphiql-execute-button").click()
        page.locator(".graphiql-response", has_text=re.compile("Test.plant")).wait_for()
        page.route("**/graphql", lambda route: route.fulfill(content_type="application/json", body=LONG_NUMBER))
        page.locator(".graphiql-execute-button").click()
        page.locator(".graphiql-response", has_text="9007199254740993").wait_for()
        assert page.evaluate("window.localStorage.length") == 0
    assert visited.origins <= {urlsplit(service.url).netloc, ""}
    assert visited.complaints == []
