"""Check that the deployment package has not grown too much: ``python -m scripts.package_size ZIP``.

The command prints the unpacked size and the ten largest dependencies. It fails if the package is more than five percent
larger than the recorded size, because every instance loads the package when it starts. With ``--record``, it records
the current size as the new limit.
"""

import argparse
import json
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scripts.package import SITE_PACKAGES

RECORD: Final = Path(__file__).with_name("package_size.json")
LARGEST: Final = 10
MAX_GROWTH: Final = 0.05
_NAME: Final = "unpackedBytes"


def main(arguments: list[str], record_file: Path = RECORD) -> int:
    """Print the sizes in a package, compare the total with the recorded size, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.package_size", description="Check the package's size.")
    parser.add_argument("package", type=Path, help="the deployment package")
    parser.add_argument("--record", action="store_true", help="accept the size instead of checking it")
    options = parser.parse_args(arguments)
    sizes = measure_dependency_bytes(options.package)
    unpacked = sum(sizes.values())
    sys.stdout.write(f"unpacked: {unpacked:,} bytes\n")
    for name, size in sorted(sizes.items(), key=lambda each: (-each[1], each[0]))[:LARGEST]:
        sys.stdout.write(f"{size:>13,}  {name}\n")
    if options.record:
        record_file.write_text(json.dumps({_NAME: unpacked}) + "\n", encoding="utf-8")
        return 0
    recorded = int(json.loads(record_file.read_text(encoding="utf-8"))[_NAME])
    if unpacked <= recorded * (1 + MAX_GROWTH):
        return 0
    sys.stderr.write(
        f"the package has grown by {unpacked / recorded - 1:.1%} since {recorded:,} bytes were recorded; "
        f"remove what it does not need, or accept it: python -m scripts.package_size {options.package} --record\n"
    )
    return 1


def measure_dependency_bytes(package_path: Path) -> Mapping[str, int]:
    """Return the unpacked size in bytes of each dependency of a deployment package, by name and version.

    The entry ``files in no RECORD`` is the size of the files in the folder of dependencies that no dependency lists.
    The entry ``the app`` is the size of all files outside this folder.
    """
    with zipfile.ZipFile(package_path) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        owners = {path: owner for owner, paths in _map_dependencies_to_file_paths(archive).items() for path in paths}
    total: Counter[str] = Counter()
    for path, size in sizes.items():
        total[owners.get(path, _get_entry_name_of_file_in_no_dependency(path))] += size
    return total


def _map_dependencies_to_file_paths(archive: zipfile.ZipFile) -> dict[str, list[str]]:
    """Return the paths of each dependency's files, as listed in its RECORD file, by name and version."""
    found: dict[str, list[str]] = {}
    for path in archive.namelist():
        parent, _, name = path.rpartition("/")
        if name == "RECORD" and parent.endswith(".dist-info"):
            owner = parent.rpartition("/")[2].removesuffix(".dist-info").replace("-", " ")
            lines = archive.read(path).decode().splitlines()
            found.setdefault(owner, []).extend(f"{SITE_PACKAGES}/{line.split(',')[0]}" for line in lines)
    return found


def _get_entry_name_of_file_in_no_dependency(path: str) -> str:
    """Return the name under which :func:`measure_dependency_bytes` counts a file that no dependency lists."""
    return "files in no RECORD" if path.startswith(SITE_PACKAGES) else "the app"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
