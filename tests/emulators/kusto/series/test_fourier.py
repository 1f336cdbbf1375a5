"""Tests of the Fourier transform of series."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint


def test_the_inverse_fourier_transform_restores_the_series(endpoint: Endpoint) -> None:
    """The Fourier transform of a sine wave has two frequencies, and the inverse returns the wave."""
    query = (
        "range x from 0 to 7 step 1 | summarize y = make_list(sin(2 * pi() / 8 * x))"
        " | extend (re, im) = series_fft(y) | extend (back, none) = series_ifft(re, im) | project y, re, im, back, none"
    )
    ((series, real, imaginary, back, none),) = endpoint.query_rows(query)
    assert real == pytest.approx([0.0] * 8, abs=1e-9)
    assert imaginary == pytest.approx([0, -4, 0, 0, 0, 0, 0, 4], abs=1e-9)
    assert (back, none) == (pytest.approx(series, abs=1e-9), pytest.approx([0.0] * 8, abs=1e-9))


@pytest.mark.parametrize(
    "arguments", ["dynamic([1,null])", "dynamic([1,2]), dynamic([1])", "dynamic(['NaN'])", "dynamic(1)"]
)
def test_fourier_transforms_of_incomplete_series_are_null(endpoint: Endpoint, arguments: str) -> None:
    """The transform of a series with a missing point, or with parts of different length, is null."""
    assert endpoint.query_rows(f"print y = 1 | extend (re, im) = series_fft({arguments}) | project re, im") == [
        [None, None]
    ]


def test_an_empty_series_has_an_empty_transform(endpoint: Endpoint) -> None:
    """The transform of an empty series is empty."""
    assert endpoint.query_rows("print y = 1 | extend (re, im) = series_fft(dynamic([])) | project re, im") == [[[], []]]
