"""Content negotiation by the Accept header (RFC 9110 section 12.5.1)."""

from collections.abc import Sequence


def choose_media_type(accept_header: str, offered: Sequence[str]) -> str:
    """Return the offered media type with the highest weight in the Accept header; of equal weights, the first offered.

    If the header accepts no offered media type, return the default.

    Args:
        accept_header: value of the Accept header; empty if the header is missing.
        offered: media types that the service can send, the default first.
    """
    weights = {media_type: _get_weight_in_accept_header(accept_header, media_type) for media_type in offered}
    best = max(offered, key=lambda media_type: weights[media_type])
    return best if weights[best] > 0 else offered[0]


def _get_weight_in_accept_header(accept_header: str, media_type: str) -> float:
    """Return the weight (q) that an Accept header gives to a media type; 1 if the header is empty."""
    main = media_type.partition("/")[0]
    ranges = dict(_parse_media_type_and_weight(part) for part in accept_header.split(",") if part.strip())
    if not ranges:
        return 1.0
    for pattern in (media_type, f"{main}/*", "*/*"):
        if pattern in ranges:
            return ranges[pattern]
    return 0.0


def _parse_media_type_and_weight(media_range: str) -> tuple[str, float]:
    """Return the media type and the weight of ``text/csv;q=0.5``; the weight is 1 if it is missing, 0 if invalid."""
    name, *parameters = (piece.strip().lower() for piece in media_range.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, float(parameter[2:])
            except ValueError:
                return name, 0.0
    return name, 1.0
