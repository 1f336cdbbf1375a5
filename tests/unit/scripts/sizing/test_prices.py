"""Tests of the prices of the sizing model."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from scripts.sizing.__main__ import WRONG_OPTIONS, main
from scripts.sizing.prices import METERS, read_currency_and_prices

ROOT = Path(__file__).parents[4]
PRICES = ROOT / "samples" / "prices.example.yaml"


def _write_price_file(folder: Path, change: Callable[[dict[str, object]], None]) -> Path:
    prices: dict[str, object] = dict.fromkeys(METERS, 2)
    change(prices)
    path = folder / "prices.yaml"
    path.write_text(yaml.safe_dump({"currency": "EUR", "prices": prices}), encoding="utf-8")
    return path


def test_costs_are_quantities_times_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The total cost is the sum of quantity times price over all meters."""
    path = _write_price_file(tmp_path, lambda _: None)
    assert main(["--example", "plant", "--prices", str(path), "--json"]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert reply["costs"]["total"] == pytest.approx(2 * sum(reply["quantities"].values()))
    assert main(["--example", "plant", "--prices", str(path)]) == 0
    assert f"Cost of a month: {reply['costs']['total']:,.2f} EUR" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda prices: prices.pop("log_analytics_gb"), "the price of meter `log_analytics_gb` is missing"),
        (lambda prices: prices.update(log_analytics_gb=None), "the price of meter `log_analytics_gb` is missing"),
        (lambda prices: prices.update(unicorns=1), "meter `unicorns` is unknown"),
        (lambda prices: prices.update(log_analytics_gb=-1), "meter `log_analytics_gb` must be a number of at least 0"),
        (
            lambda prices: prices.update(log_analytics_gb=True),
            "meter `log_analytics_gb` must be a number of at least 0",
        ),
        (lambda prices: prices.update(log_analytics_gb="1"), "meter `log_analytics_gb` must be a number of at least 0"),
    ],
)
def test_wrong_prices_are_rejected_with_their_meter(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, object]], None],
    message: str,
) -> None:
    """A missing, unknown or invalid price is rejected with the meter's name, and no cost is printed."""
    assert main(["--prices", str(_write_price_file(tmp_path, change))]) == WRONG_OPTIONS
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("text", ["", "[]", "prices: {}", "currency: EUR\nprices: []", "currency: 1\nprices: {}", "{"])
def test_price_files_with_a_wrong_structure_are_rejected(tmp_path: Path, text: str) -> None:
    """A price file with a wrong structure is rejected with the name of the invalid field."""
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_currency_and_prices(path, ())


def test_the_price_sample_lists_every_meter() -> None:
    """samples/prices.example.yaml lists each meter with the address of its price page, without prices."""
    text = PRICES.read_text(encoding="utf-8")
    prices = yaml.safe_load(text)["prices"]
    assert prices == dict.fromkeys(METERS)
    for name, meter in METERS.items():
        assert f"{name}: null  # {meter.unit}" in text
        assert f"# {meter.page}" in text
