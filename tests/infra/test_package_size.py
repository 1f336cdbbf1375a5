"""Tests of the check that limits the package's size."""

import json
from pathlib import Path

import pytest

from scripts import package, package_size


def _build_package(folder: Path, size: int) -> Path:
    record = f"{package.SITE_PACKAGES}/one-1.0.dist-info/RECORD"
    content = {"function_app.py": b"app", f"{package.SITE_PACKAGES}/one.py": b"1" * size, record: b"one.py,,\n"}
    package.write_archive(content, folder / "app.zip")
    return folder / "app.zip"


def test_the_size_check_prints_the_largest_dependencies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The check prints the unpacked size of the package and its largest dependencies."""
    sizes = package_size.measure_dependency_bytes(_build_package(tmp_path, 1000))
    assert sizes["one 1.0"] == 1000
    assert sizes["the app"] == 3
    assert package_size.main([str(tmp_path / "app.zip"), "--record"], tmp_path / "record.json") == 0
    assert "        1,000  one 1.0" in capsys.readouterr().out


def test_growth_of_the_package_over_five_percent_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the package has grown by over 5 %, the check fails and states how to accept the growth."""
    record = tmp_path / "record.json"
    arguments = [str(_build_package(tmp_path, 10_000))]
    total = sum(package_size.measure_dependency_bytes(tmp_path / "app.zip").values())
    record.write_text(json.dumps({"unpackedBytes": total}))
    assert package_size.main(arguments, record) == 0
    _build_package(tmp_path, 10_400)
    assert package_size.main(arguments, record) == 0
    _build_package(tmp_path, 10_600)
    assert package_size.main(arguments, record) == 1
    assert "has grown by 6.0%" in (told := capsys.readouterr().err)
    assert "--record" in told
    assert package_size.main([*arguments, "--record"], record) == 0
    assert package_size.main(arguments, record) == 0
    _build_package(tmp_path, 10)
    assert package_size.main(arguments, record) == 0
