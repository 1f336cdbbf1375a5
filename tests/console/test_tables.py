"""Tests of the shadow at the edge of a table, which shows that columns are hidden beyond the edge."""

import base64

from playwright.sync_api import Locator, expect

from tests.console.test_queries_answers import run_ad_hoc
from tests.console.visits import open_console
from tests.service.local_service import Service

WIDE = "print " + ", ".join(f"column{number} = 'a text that needs some space'" for number in range(12))

# A pixel in the empty part of the table, between the last row and the lower border.
EDGE = """async ([picture, side]) => {
  const bytes = Uint8Array.from(atob(picture), (each) => each.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const pixel = (x) => [...context.getImageData(x, Math.floor(image.height / 2), 1, 1).data];
  const left = pixel(3), middle = pixel(Math.floor(image.width / 2)), right = pixel(image.width - 4);
  return JSON.stringify(side === "left" ? left : right) !== JSON.stringify(middle);
}"""


def has_shadow(table: Locator, side: str) -> bool:
    """Return whether a table has a shadow at this edge."""
    # Without rows only the background is visible, which is what the shade is a part of.
    hide = "element => { element.firstElementChild.style.opacity = 0; element.style.minHeight = '80px'; }"
    table.evaluate(hide)
    picture = base64.b64encode(table.screenshot()).decode()
    shaded: bool = table.page.evaluate(EDGE, [picture, side])
    return shaded


def test_a_table_has_a_shadow_only_where_columns_are_hidden(service: Service) -> None:
    """A table has a shadow only at an edge beyond which columns are hidden."""
    with open_console(service, width=1024) as console:
        page = run_ad_hoc(console, "print one = 1")
        table = page.get_by_role("region", name="Rows of the result")
        expect(table).to_be_visible()
        assert [has_shadow(table, side) for side in ("left", "right")] == [False, False]
        console.check_no_errors()
    with open_console(service, width=1024) as console:
        page = run_ad_hoc(console, WIDE)
        table = page.get_by_role("region", name="Rows of the result")
        expect(table).to_be_visible()
        assert [has_shadow(table, side) for side in ("left", "right")] == [False, True]
        table.evaluate("element => { element.scrollLeft = element.scrollWidth; }")
        assert [has_shadow(table, side) for side in ("left", "right")] == [True, False]
        console.check_no_errors()
