"""Tests of the benchmark command: exit codes and missing tools."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import bench.__main__ as command
from bench import console, console_live, gateway, peers
from bench.figures import Benchmark, Figure, ToolMissingError


def measure_within_limit() -> Iterator[Figure]:
    """Yield a measurement within its limit, as a benchmark does."""
    yield Figure("good", 1, "s", at_most=2)


def measure_beyond_limit() -> Iterator[Figure]:
    """Yield a measurement beyond its limit, as a benchmark does."""
    yield Figure("bad", 3, "s", at_most=2)


def measure_with_missing_tool() -> Iterator[Figure]:
    """Yield a measurement and then report a missing tool, as a benchmark does."""
    yield Figure("first_part", 1, "s")
    raise ToolMissingError("Tool A is not installed")


@pytest.mark.parametrize(
    ("benchmarks", "code", "figures"),
    [
        ((measure_within_limit,), 0, ["good"]),
        ((measure_within_limit, measure_beyond_limit), 1, ["good", "bad"]),
        ((measure_with_missing_tool, measure_within_limit), 3, ["first_part", "good"]),
        ((measure_with_missing_tool, measure_beyond_limit), 1, ["first_part", "bad"]),
    ],
)
def test_the_exit_code_states_met_exceeded_or_unmeasured_limits(
    benchmarks: tuple[Benchmark, ...],
    code: int,
    figures: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The exit code is 0 if all limits are met, 1 if one is exceeded, 3 if a tool is missing."""
    monkeypatch.setattr(command, "BENCHMARKS", {each.__name__: each for each in benchmarks})
    assert command.main([]) == code
    printed = capsys.readouterr()
    assert [line.split('"')[3] for line in printed.out.splitlines()] == figures
    assert ("measure_with_missing_tool: Tool A is not installed" in printed.err) == (
        measure_with_missing_tool in benchmarks
    )


def build_benchmark(values: Sequence[float], bounds: Mapping[str, float]) -> Benchmark:
    """Return a benchmark that returns the next of the given values in each run."""
    remaining = iter(values)

    def yield_measurements() -> Iterator[Figure]:
        yield Figure("varying", next(remaining), "s", bounds.get("at_least"), bounds.get("at_most"))

    return yield_measurements


@pytest.mark.parametrize(
    ("values", "bounds", "code"),
    [
        ([9.0, 1.0, 1.5], {"at_most": 2.0}, 0),
        ([9.0, 1.0, 3.0], {"at_most": 2.0}, 1),
        ([0.0, 0.0, 1.0], {"at_most": 0.0}, 1),
        ([1.0, 1.0, 0.9], {"at_least": 1.0, "at_most": 1.0}, 1),
        ([0.0, 0.0, 0.0], {"at_most": 0.0}, 0),
    ],
)
def test_the_median_of_all_runs_must_be_within_the_limits(
    values: list[float],
    bounds: dict[str, float],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The median of a measured figure over all runs must be within its limits.

    A number of defects must be within its limits in each run.
    """
    monkeypatch.setattr(command, "BENCHMARKS", {"varying": build_benchmark(values, bounds)})
    assert command.main([]) == code
    line = json.loads(capsys.readouterr().out)
    assert line["value"] == sorted(values)[1]
    spread = {"runs": 3, "minimum": min(values), "median": sorted(values)[1], "maximum": max(values)}
    assert line["spread"] == spread


def test_number_of_runs_can_be_chosen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The option for the number of runs determines how often each benchmark runs."""
    monkeypatch.setattr(command, "BENCHMARKS", {"varying": build_benchmark([4.0], {})})
    assert command.main(["--runs", "1", "varying"]) == 0
    assert json.loads(capsys.readouterr().out)["spread"]["runs"] == 1


def test_unknown_benchmark_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown benchmark ends with exit code 2 and the list of known benchmarks."""
    assert command.main(["nowhere"]) == 2
    assert "request_rate" in capsys.readouterr().err


def test_each_benchmark_names_its_missing_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each benchmark names its missing tool, such as Chromium or Lighthouse."""
    monkeypatch.setattr(peers, "PEERS", tmp_path)
    with pytest.raises(ToolMissingError, match="datasette"):
        list(peers.measure_peers())
    monkeypatch.setattr(gateway, "MOSQUITTO", None)
    with pytest.raises(ToolMissingError, match="Mosquitto"):
        next(gateway.measure_gateway())
    monkeypatch.setattr(console_live, "CHROMIUM", None)
    with pytest.raises(ToolMissingError, match="Chromium"):
        list(console_live.measure_console_live())
    (tmp_path / "index.html").touch()
    monkeypatch.setattr(console, "BUILT", tmp_path)
    monkeypatch.setattr(console, "CHROMIUM", None)
    with pytest.raises(ToolMissingError, match="Chromium"):
        list(console.measure_console())
    monkeypatch.setattr(console, "CHROMIUM", "chromium")
    monkeypatch.setattr(console, "LIGHTHOUSE", tmp_path)
    with pytest.raises(ToolMissingError, match="Lighthouse"):
        list(console.measure_console())
    (tmp_path / "index.html").unlink()
    with pytest.raises(ToolMissingError, match="npm"):
        list(console.measure_console())
