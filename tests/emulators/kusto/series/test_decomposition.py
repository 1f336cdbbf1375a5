"""Tests of the detection of periods, and of the anomaly scores of the points of a series."""

import numpy as np
import pytest

from emulators.kusto.series.decomposition import (
    Percentiles,
    compute_outlier_scores,
    get_outlier_percentiles,
    score_outliers,
)
from tests.emulators.kusto.endpoints import Endpoint
from tests.emulators.kusto.series.outputs import require_outputs

TRAFFIC = (
    "dynamic([80, 139, 87, 110, 68, 54, 50, 51, 53, 133, 86, 141, 97, 156, 94, 149, 95, 140, 77, 61, 50, 54, 47, 133, "
    "72, 152, 94, 148, 105, 162, 101, 160, 87, 63, 53, 55, 54, 151, 103, 189, 108, 183, 113, 175, 113, 178, 90, 71, "
    "62, 62, 65, 165, 109, 181, 115, 182, 121, 178, 114, 170])"
)


def test_the_documented_period_of_a_series_is_found(endpoint: Endpoint) -> None:
    """The period of 14 points in the documented traffic series is found with the documented score."""
    table = endpoint.query_table(f"print y = {TRAFFIC} | project series_periods_detect(y, 0.0, 50.0, 2)")
    names = [each.column_name for each in table.columns]
    assert names == ["series_periods_detect_y_periods", "series_periods_detect_y_scores"]
    assert table.raw_rows == [[[14.0, 0.0], pytest.approx([0.84, 0.0], abs=0.005)]]
    assert endpoint.query_rows(f"print x = series_periods_detect({TRAFFIC}, 0.0, 50.0, 1)") == [[[14.0]]]


def test_a_given_period_is_scored_by_how_well_the_series_repeats(endpoint: Endpoint) -> None:
    """A period that the caller gives has a high score if the series repeats with this period; otherwise 0."""
    query = f"print y = {TRAFFIC} | project series_periods_validate(y, 14.0, 10.0, 3, 31)"
    assert endpoint.query_rows(query) == [[[14.0, 10.0, 3.0, 31.0], pytest.approx([0.84, 0, 0, 0], abs=0.005)]]


SERIES = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 30.0])


def test_points_between_the_percentiles_have_no_score() -> None:
    """Points above the high percentile have positive anomaly scores, points below the low percentile negative."""
    scores = compute_outlier_scores(SERIES, Percentiles(25.0, 75.0))
    assert scores[3:7].tolist() == [0, 0, 0, 0]
    assert scores[-1] > 0 > scores[0]


def test_tukey_scores_are_distances_in_interquartile_ranges() -> None:
    """For percentiles 25 and 75, an anomaly score is the distance to the quartile in interquartile ranges."""
    low, high = np.percentile(SERIES, [25, 75])
    assert compute_outlier_scores(SERIES, Percentiles(25.0, 75.0))[-1] == pytest.approx((30 - high) / (high - low))


def test_anomaly_scores_for_custom_percentiles_have_kustos_factor() -> None:
    """For the percentiles 10 and 90, the distance is multiplied by the factor in Kusto's published scores."""
    low, high = np.percentile(SERIES, [10, 90])
    assert compute_outlier_scores(SERIES, Percentiles(10.0, 90.0))[-1] == pytest.approx(
        2.772605605507915 * (30 - high) / (high - low)
    )


def test_the_kind_of_anomaly_score_selects_the_percentiles() -> None:
    """The score kind ``tukey`` ignores given percentiles; ``ctukey`` uses them, by default 10 and 90."""
    assert get_outlier_percentiles("tukey") == (25.0, 75.0)
    assert get_outlier_percentiles("ctukey") == (10.0, 90.0)

    def compute_score(kind: str, low_percentile: float | None, high_percentile: float | None) -> list[float]:
        found: list[float] = require_outputs(score_outliers(SERIES, kind, None, low_percentile, high_percentile, None))[
            "scores"
        ].tolist()
        return found

    assert compute_score("tukey", 10, 90) == compute_outlier_scores(SERIES, Percentiles(25.0, 75.0)).tolist()
    assert compute_score("ctukey", None, None) == compute_outlier_scores(SERIES, Percentiles(10.0, 90.0)).tolist()
    assert compute_score("ctukey", 20, 80) == compute_outlier_scores(SERIES, Percentiles(20.0, 80.0)).tolist()


def test_missing_points_have_no_score_and_no_influence() -> None:
    """Points that are missing or have the ignored value have the score 0 and do not affect others."""
    expected = compute_outlier_scores(SERIES, Percentiles(25.0, 75.0)).tolist()
    gaps = np.append(SERIES, [np.nan, -1.0])
    assert require_outputs(score_outliers(gaps, "tukey", -1.0, None, None, None))["scores"].tolist() == [
        *expected,
        0,
        0,
    ]


def test_tested_points_do_not_influence_the_percentiles() -> None:
    """The tested points at the end are scored with the percentiles of the earlier points."""
    longer = np.append(SERIES, [1000.0, 2000.0])
    scores = compute_outlier_scores(longer, Percentiles(25.0, 75.0), tested_points=2)
    assert scores[:-2].tolist() == compute_outlier_scores(SERIES, Percentiles(25.0, 75.0)).tolist()
    assert scores[-1] > scores[-2] > scores[-3]


def test_a_series_without_points_has_no_anomaly_scores() -> None:
    """A null series has null scores; in a series of missing points, each has the score 0."""
    assert score_outliers(None, "tukey", None, None, None, None) is None
    assert require_outputs(score_outliers(np.array([np.nan, np.nan]), "tukey", None, None, None, None))[
        "scores"
    ].tolist() == [0, 0]
