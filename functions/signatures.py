"""HTTP operation that lists all signatures of the workspace, for periodic review."""

from typing import Annotated, Any, Final

from pydantic import AwareDatetime, BeforeValidator, Field

from functions.audit_overview import PageQuery
from functions.reply_docs import audit_overview as replies
from shared.auth.rights import AccessRight
from shared.errors import ValidationErrors, build_invalid_field_error
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group
from shared.provenance.cursors import ListCursor
from shared.signatures.ports import SignatureFilter
from shared.timestamps import format_rfc3339, parse_rfc3339
from shared.wiring import services
from shared.wiring.features import PROVENANCE

GROUP = Group("signatures")

_CURSOR: Final = ListCursor("signatures", (str,), str, ("userId", "from", "to"))


def _parse_time_if_text(text: Any) -> Any:
    # No signature is between two microseconds, so rounding up keeps both the inclusive start and the exclusive end.
    return parse_rfc3339(text, round_up=True) if isinstance(text, str) else text


Time = Annotated[AwareDatetime | None, BeforeValidator(_parse_time_if_text)]


class SignaturesQuery(PageQuery):
    """Filters of the list of signatures."""

    user_id: str | None = Field(None, alias="userId", min_length=1, description="Only signatures of this member.")
    start: Time = Field(None, alias="from", description="Earliest time of the signature, inclusive.")
    end: Time = Field(None, alias="to", description="Latest time of the signature, exclusive.")

    def to_filter(self) -> SignatureFilter:
        """Convert the query parameters to a filter of signatures."""
        start, end = ("" if time is None else format_rfc3339(time) for time in (self.start, self.end))
        return SignatureFilter(self.user_id, start, end)

    @property
    def cursor_filter_text(self) -> str:
        """Values of all filters as one text.

        The paging cursor contains this text, so that a cursor of a list with other filters is rejected.
        """
        wanted = self.to_filter()
        return f"{wanted.start} {wanted.end} {wanted.user_id or ''}"


async def _check_signatures_query(call: Call[SignaturesQuery], faults: ValidationErrors) -> None:
    query = call.query
    if (
        faults.has_valid_fields("from", "to")
        and query.start is not None
        and query.end is not None
        and query.start > query.end
    ):
        faults.add(build_invalid_field_error("from", "must not be after `to`"))
    _CURSOR.add_cursor_error_if_invalid(faults, query.cursor, query.cursor_filter_text)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/signatures",
    right=AccessRight.PROVENANCE_READ,
    feature=PROVENANCE,
    query=SignaturesQuery,
    check=_check_signatures_query,
    docs=replies.SIGNATURES_LISTED,
)
async def list_signatures(call: Call[SignaturesQuery]) -> Reply:
    """Return the electronic signatures of all decisions, newest first."""
    query = call.query
    after = _CURSOR.decode(query.cursor, query.cursor_filter_text) or ""
    page = await services().signatures.list.list_signatures(query.to_filter(), after, query.limit)
    cursor = None
    if page.has_more:
        cursor = _CURSOR.encode(query.cursor_filter_text, [page.signatures[-1].place])
    return build_json_reply({"signatures": [dict(one.content) for one in page.signatures], "cursor": cursor})
