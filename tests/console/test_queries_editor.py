"""Tests of the KQL editor, the result table, and parameters that are connections."""

import re

from playwright.sync_api import expect

from tests.console.visits import Console

BAGS = """range i from 1 to 5 step 1
| extend bag = bag_pack('name', strcat('item ', tostring(i)), 'parts', dynamic([1, 2]))"""


def test_editor_colours_and_completes_kql(console: Console) -> None:
    """The editor highlights KQL and completes operators, columns, signals and connections; undo works."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    editor = page.get_by_label("KQL", exact=True)
    editor.fill("Telemetry\n| ")
    editor.press("End")
    editor.press_sequentially("whe")
    options = page.get_by_role("listbox", name="Completions").get_by_role("option")
    expect(options.first).to_have_text(re.compile("^where"))
    expect(editor).to_have_attribute("aria-activedescendant", re.compile(".+-0$"))
    console.check_appearance("ad-hoc-completion")
    editor.press("Tab")
    expect(editor).to_have_value("Telemetry\n| where")
    editor.press_sequentially(" Payload.returnT")
    options.first.click()
    expect(editor).to_have_value("Telemetry\n| where Payload.returnTemperature")
    editor.press_sequentially(' > 0 and ConnectionLookup == "chil')
    expect(options).to_have_text([re.compile("^chiller-sim")])
    editor.press("Escape")
    expect(options).to_have_count(0)
    editor.press("Control+z")
    expect(editor).not_to_have_value(re.compile("chil$"))
    expect(page.locator("pre span", has_text="where").first).to_be_visible()


def test_result_columns_are_filtered_and_resized_and_json_opens(console: Console) -> None:
    """Columns of a result can be filtered and resized, also by keyboard; a cell with JSON can be opened."""
    page = console.sign_in("editor@plant-a.example").open("queries/-/ad-hoc", "Ad-hoc query").page
    page.get_by_label("KQL", exact=True).fill(BAGS)
    page.get_by_role("button", name="Run", exact=True).click()
    table = page.get_by_role("region", name="Rows of the result")
    expect(table.locator("tbody tr")).to_have_count(5)
    page.get_by_label("Filter i").fill("> 3")
    expect(table.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Filter bag").fill("item 5")
    expect(table.locator("tbody tr")).to_have_count(1)
    console.check_appearance("rows-filtered")
    head = table.get_by_role("columnheader", name=re.compile("^bag"))
    width = "head => head.offsetWidth"
    before = head.evaluate(width)
    page.get_by_role("button", name="Width of bag").press("ArrowRight")
    assert head.evaluate(width) > before
    table.get_by_role("button", name=re.compile("item 5")).click()
    dialog = page.get_by_role("dialog", name="bag")
    expect(dialog).to_contain_text('"name": "item 5"')
    console.check_appearance("json-cell")
    dialog.get_by_role("button", name="Close").click()
    page.get_by_label("Filter bag").fill("nothing like it")
    expect(table.locator("tbody tr")).to_have_count(0)


def test_a_connection_parameter_is_selected_from_a_list(console: Console) -> None:
    """If a parameter of a query is a connection, the page offers a list of the surface's connections."""
    page = console.sign_in("viewer@plant-a.example").open("queries/latest-readings", "Latest readings").page
    choice = page.get_by_label("connection", exact=True)
    expect(choice.get_by_role("option", name="chiller-sim")).to_be_attached()
    choice.select_option("chiller-sim")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("region", name="About the result").wait_for()
    assert "p.connection=chiller-sim" in page.url
