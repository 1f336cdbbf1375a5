"""Tests of the pages for queries with a token that has few rights."""

from playwright.sync_api import Page, expect

from tests.console.visits import Console
from tests.service.local_service import Service


def sign_in_with_rights(console: Console, service: Service, *scopes: str) -> Page:
    """Sign in with a token that has only these rights."""
    token = (
        service.create_client("admin@plant-a.example", ",".join(scopes))
        .headers["Authorization"]
        .removeprefix("Bearer ")
    )
    page = console.page
    page.goto(f"{service.url}/console/")
    page.get_by_label("API key or token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def test_a_query_can_be_run_by_lookup_without_the_right_to_list_queries(console: Console, service: Service) -> None:
    """With only the right Execute, a user runs a query by id or API path.

    The page says which right the list of queries needs.
    """
    page = sign_in_with_rights(console, service, "Workspace.WarmQuery.Execute")
    console.open("queries", "Queries")
    page.get_by_label("ID or API path").fill("cooling/pressure")
    page.get_by_role("button", name="Parameters…").click()
    page.get_by_label("Parameters").fill("device=rig-7")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("region", name="About the result")).to_contain_text("Approved by admin@plant-a.example")
    console.check_appearance("query-by-lookup")
    assert page.get_by_role("button", name="Ad-hoc query").count() == 0
    console.expected.append("404")
    page.get_by_label("ID or API path").fill("nothing")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("WARM_QUERY_NOT_FOUND")


def test_a_token_without_the_right_to_execute_shows_definitions(console: Console, service: Service) -> None:
    """With only the right to read the catalog, a user sees definitions, and the rights that runs and history need."""
    page = sign_in_with_rights(console, service, "Workspace.Catalog.Read")
    console.open("queries/pressure-5m", "Pressure per five minutes")
    expect(page.get_by_role("tab")).to_have_text(["Definition", "History"])
    page.get_by_role("tab", name="History").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("Workspace.Provenance.Read")
    assert page.get_by_role("button", name="Edit").count() == 0


def test_queries_can_be_saved_without_the_right_to_read_the_catalog(console: Console, service: Service) -> None:
    """Users with the rights for ad-hoc queries and drafts can run and save queries without reading the catalog."""
    page = sign_in_with_rights(console, service, "Workspace.WarmQuery.AdHoc", "Workspace.WarmQuery.Manage")
    console.open("queries", "Queries")
    page.get_by_role("button", name="Ad-hoc query").click()
    page.get_by_label("KQL", exact=True).fill("Telemetry | count")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("region", name="Rows of the result")).to_contain_text("Count")
    page.get_by_role("button", name="Save as a draft…").click()
    page.get_by_label("ID", exact=True).fill("blind")
    page.get_by_label("Name", exact=True).fill("Blind")
    page.get_by_label("Surface", exact=True).fill("cooling")
    expect(page.get_by_label("KQL", exact=True)).to_have_value("Telemetry | count")
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queries")
    removed = service.create_client("admin@plant-a.example").delete("/oi-api/warm-queries/blind")
    assert removed.status_code == 204
