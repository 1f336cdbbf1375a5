"""Build the deployment package (a ZIP archive for Azure Functions): ``python -m scripts.package [FOLDER]``.

The package contains the app, the built browser pages and every dependency for Python 3.13 on Linux x86-64. App files
must match the patterns of this script and, in a git repository, be tracked; so keys and data in the checkout are
excluded. The same input results in the same bytes.
"""

import argparse
import fnmatch
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
SITE_PACKAGES: Final = ".python_packages/lib/site-packages"
"""Folder in which the Python worker of Azure Functions looks for an app's dependencies."""

FILES: Final = ("function_app.py", "host.json", "requirements.txt")
FOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "functions": ("*.py",),
    "shared": ("*.py", "*.graphql"),
    "static": (
        *("*.html", "*.js", "*.css", "*.svg", "*.png", "*.ico", "*.ttf", "*.woff", "*.woff2", "*.wasm"),
        *("licenses.txt", "*.LICENSE.txt"),
    ),
}
"""Folders of the package, each with the patterns of included file names."""

BUILT_FOLDER: Final = "static"
"""Folder that the build of the browser pages writes; git does not track it."""
BUILT_PAGES: Final = ("static/built", "static/console/built")
"""Files that exist if the browser pages are built."""

PYTHON: Final = (3, 13)
PLATFORMS: Final = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
"""Platform tags of usable wheels: Azure Functions runs Debian 12 with glibc 2.36, and older glibc wheels run there."""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE: Final = 0o100644 << 16
_UNIX: Final = 3
_INSTALLED: Final = ("purelib", "platlib")


class PackageFile(NamedTuple):
    """File with its path inside site-packages and its content."""

    path: str
    content: bytes


class PackageError(Exception):
    """The deployment package cannot be built; the message states the reason and the remedy."""


def main(arguments: list[str]) -> int:
    """Build the package with the given command-line options, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.package", description="Build the deployment package.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="where app.zip goes (dist)")
    folder: Path = parser.parse_args(arguments).folder
    try:
        with tempfile.TemporaryDirectory() as wheels:
            download_wheels(ROOT / "requirements.txt", Path(wheels))
            content = collect_app_files(ROOT) | collect_dependency_files(Path(wheels))
    except PackageError as error:
        sys.stderr.write(f"the package cannot be built: {error}\n")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    write_archive(content, folder / "app.zip")
    (folder / "app.txt").write_text(format_file_listing(content), encoding="utf-8")
    unpack_archive(folder / "app.zip", folder / "app")
    size = (folder / "app.zip").stat().st_size
    sys.stdout.write(f"{folder / 'app.zip'}: {len(content)} files, {size:,} bytes; app.txt lists them\n")
    return 0


def collect_app_files(root: Path) -> dict[str, bytes]:
    """Return the content of the app's files and of the built browser pages, by path inside the package.

    Args:
        root: root folder of a checkout of the repository.

    Raises:
        PackageError: if a file is missing or a symbolic link, or the browser pages are not built.
    """
    missing = [name for name in (*FILES, *FOLDERS) if not (root / name).exists()]
    if missing:
        raise PackageError(f"{', '.join(missing)} is missing in {root}")
    unbuilt = [mark for mark in BUILT_PAGES if not (root / mark).is_file()]
    if unbuilt:
        raise PackageError(f"the browser pages are not built ({', '.join(unbuilt)} is missing); run make assets")
    named = [
        *FILES,
        *(str(path) for folder, names in FOLDERS.items() for path in _iterate_matching_files(root, folder, names)),
    ]
    tracked = find_tracked_files(root)
    if tracked is None:
        sys.stderr.write(f"{root} is not a git repository: every file with a matching name is packed\n")
    else:
        untracked = [name for name in named if name not in tracked and not name.startswith(f"{BUILT_FOLDER}/")]
        named = [name for name in named if name not in untracked]
        if untracked:
            sys.stderr.write(f"excluded, because git does not track it: {', '.join(untracked)}\n")
    links = {part for name in named for part in (name, *_iterate_parent_folders(name)) if (root / part).is_symlink()}
    if links:
        raise PackageError(
            f"symbolic links cannot be packed; replace each link by its target: {', '.join(sorted(links))}"
        )
    files = {name: (root / name).read_bytes() for name in named}
    # The package holds the installed dependencies, so the constraints of their installation are not part of it.
    lines = files["requirements.txt"].splitlines(keepends=True)
    files["requirements.txt"] = b"".join(line for line in lines if not line.startswith(b"-c "))
    return files


def find_tracked_files(root: Path) -> set[str] | None:
    """Return the paths of the files that git tracks in a folder; None if the folder is not the root of a repository."""
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return None
    command = [git, "-C", str(root), "ls-files", "-z", "--cached"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own command line
    if done.returncode:
        raise PackageError(f"git ls-files failed\n{done.stderr.strip()}")
    return set(filter(None, done.stdout.split("\0")))


def download_wheels(requirements_file: Path, folder: Path) -> None:
    """Download the wheels of the required packages for the platform of Azure Functions into a folder.

    Raises:
        PackageError: if the running Python has another version, or a required package has no wheel for the platform.
    """
    # pip evaluates environment markers for the running interpreter, not for the requested version.
    if sys.version_info[:2] != PYTHON:
        raise PackageError(f"Python {PYTHON[0]}.{PYTHON[1]} is required; this is {sys.version.split()[0]}")
    platforms = [option for name in PLATFORMS for option in ("--platform", name)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *platforms]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.13"]
    done = subprocess.run(  # noqa: S603  our own command line
        [*command, "--dest", str(folder), "--requirement", str(requirements_file)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PackageError(f"pip download failed\n{done.stderr.strip()}")


def collect_dependency_files(wheels_folder: Path) -> dict[str, bytes]:
    """Return the content of all files in a folder's wheels, by path inside the package.

    Wheels are unpacked instead of installed, because an installer adds files that differ between machines.

    Raises:
        PackageError: if two wheels contain different files with the same path.
    """
    found: dict[str, bytes] = {}
    for wheel in sorted(wheels_folder.glob("*.whl")):
        for name, content in _iterate_wheel_files(wheel):
            path = f"{SITE_PACKAGES}/{name}"
            if found.setdefault(path, content) != content:
                raise PackageError(f"{wheel.name} and another wheel contain different files with the path {name}")
    return found


def write_archive(content: Mapping[str, bytes], target: Path) -> None:
    """Write files into a ZIP archive.

    The files are sorted and have fixed times and modes, so that equal files result in equal archives.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(content):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, _REGULAR_FILE, _UNIX
            archive.writestr(entry, content[name])


def format_file_listing(content: Mapping[str, bytes]) -> str:
    """Return a text with one line for each file of the package: size, SHA-256 digest and path."""
    lines = (f"{len(data):>10} {hashlib.sha256(data).hexdigest()} {name}\n" for name, data in sorted(content.items()))
    return "".join(lines)


def unpack_archive(archive: Path, folder: Path) -> None:
    """Replace the content of a folder by the files in a package archive."""
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)


def _iterate_matching_files(root: Path, folder: str, name_patterns: Iterable[str]) -> Iterator[PurePosixPath]:
    for path in sorted((root / folder).rglob("*")):
        within = path.relative_to(root)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in within.parts)
        if path.is_file() and not hidden and _has_matching_name(path, name_patterns):
            yield PurePosixPath(within)


def _iterate_parent_folders(path: str) -> Iterator[str]:
    yield from (str(parent) for parent in PurePosixPath(path).parents if parent.parts)


def _has_matching_name(path: Path, name_patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path.name, name) for name in name_patterns)


def _iterate_wheel_files(wheel: Path) -> Iterator[PackageFile]:
    """Yield the files that a wheel installs into site-packages; scripts and headers are omitted."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            name = _compute_installed_path_or_empty(PurePosixPath(entry.filename))
            if name and not entry.is_dir():
                yield PackageFile(name, archive.read(entry))


def _compute_installed_path_or_empty(path_in_wheel: PurePosixPath) -> str:
    """Return the path in site-packages at which a wheel's file is installed.

    Return an empty text if the file is not installed.
    """
    if "__pycache__" in path_in_wheel.parts or path_in_wheel.suffix == ".pyc":
        return ""
    if not path_in_wheel.parts[0].endswith(".data"):
        return str(path_in_wheel)
    return "/".join(path_in_wheel.parts[2:]) if path_in_wheel.parts[1] in _INSTALLED else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
