"""Tests of the requests for audit bundles."""

from functions.audit_bundles import BundleBody


def test_a_bundle_with_dates_between_microseconds_contains_no_record_outside_them() -> None:
    """A start between two microseconds is rounded up and an end down, because records have whole microseconds."""
    body = BundleBody.model_validate(
        {
            "scopes": [{"target": "AccessControl"}],
            "startDate": "2026-01-05T08:00:00.0000009Z",
            "endDate": "2026-01-05T09:00:00.0000009Z",
        }
    )
    assert (body.start_date, body.end_date) == ("2026-01-05T08:00:00.000001Z", "2026-01-05T09:00:00.000000Z")
