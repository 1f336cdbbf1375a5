"""Build the deployment package: ``python -m scripts.package [FOLDER]``.

The package contains the app, the built browser pages and every dependency for Python 3.13 on Linux x86-64. It is built
from lists of names, and includes only those files of the app that git tracks, so that keys and data in the checkout are
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
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SITE_PACKAGES: Final = ".python_packages/lib/site-packages"
"""Where the Python worker looks for an app's dependencies."""

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
"""The folder that the build of the browser pages writes, so git does not track it."""
BUILT_PAGES: Final = ("static/built", "static/console/built")
"""Marks that the browser pages are built."""

PYTHON: Final = (3, 13)
PLATFORMS: Final = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
"""The platform is Debian 12, with glibc 2.36; wheels for older versions of glibc run there, too."""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE: Final = 0o100644 << 16
_UNIX: Final = 3
_INSTALLED: Final = ("purelib", "platlib")


class PackageError(Exception):
    """The package cannot be built; the text says why and what to do."""


def main(arguments: list[str]) -> int:
    """Build the package that the command line names and return the exit code."""
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
    (folder / "app.txt").write_text(format_listing(content), encoding="utf-8")
    unpack(folder / "app.zip", folder / "app")
    size = (folder / "app.zip").stat().st_size
    sys.stdout.write(f"{folder / 'app.zip'}: {len(content)} files, {size:,} bytes; app.txt lists them\n")
    return 0


def collect_app_files(root: Path) -> dict[str, bytes]:
    """Return the files of the app and of its browser pages by their path in the package.

    Args:
        root: the checkout.

    Raises:
        PackageError: if a file is missing or a symbolic link, or the browser pages are not built.
    """
    missing = [name for name in (*FILES, *FOLDERS) if not (root / name).exists()]
    if missing:
        raise PackageError(f"{', '.join(missing)} is missing in {root}")
    unbuilt = [mark for mark in BUILT_PAGES if not (root / mark).is_file()]
    if unbuilt:
        raise PackageError(f"the browser pages are not built ({', '.join(unbuilt)} is missing); run make assets")
    named = [*FILES, *(str(path) for folder, names in FOLDERS.items() for path in _matching(root, folder, names))]
    tracked = list_tracked_files(root)
    if tracked is None:
        sys.stderr.write(f"{root} is not a git repository: every file with a matching name is packed\n")
    else:
        untracked = [name for name in named if name not in tracked and not name.startswith(f"{BUILT_FOLDER}/")]
        named = [name for name in named if name not in untracked]
        if untracked:
            sys.stderr.write(f"excluded, because git does not track it: {', '.join(untracked)}\n")
    links = {part for name in named for part in (name, *_parents(name)) if (root / part).is_symlink()}
    if links:
        raise PackageError(f"{', '.join(sorted(links))}: a symbolic link; replace it by its target")
    files = {name: (root / name).read_bytes() for name in named}
    # The package holds the installed dependencies, so the constraints of their installation are not part of it.
    lines = files["requirements.txt"].splitlines(keepends=True)
    files["requirements.txt"] = b"".join(line for line in lines if not line.startswith(b"-c "))
    return files


def list_tracked_files(root: Path) -> set[str] | None:
    """Return the paths below a folder that git tracks, or None if the folder is not the root of a repository."""
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return None
    command = [git, "-C", str(root), "ls-files", "-z", "--cached"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own command line
    if done.returncode:
        raise PackageError(f"git ls-files failed\n{done.stderr.strip()}")
    return set(filter(None, done.stdout.split("\0")))


def download_wheels(requirements: Path, folder: Path) -> None:
    """Download the wheels of the requirements for the platform into a folder.

    Raises:
        PackageError: if this is another version of Python, or a requirement has no wheel for the platform.
    """
    # pip evaluates environment markers for the running interpreter, not for the requested version.
    if sys.version_info[:2] != PYTHON:
        raise PackageError(f"Python {PYTHON[0]}.{PYTHON[1]} is required; this is {sys.version.split()[0]}")
    platforms = [option for name in PLATFORMS for option in ("--platform", name)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *platforms]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.13"]
    done = subprocess.run(  # noqa: S603  our own command line
        [*command, "--dest", str(folder), "--requirement", str(requirements)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PackageError(f"pip download failed\n{done.stderr.strip()}")


def collect_dependency_files(wheels: Path) -> dict[str, bytes]:
    """Return the files of all wheels in a folder by their path in the package.

    Wheels are unpacked instead of installed, because an installer adds files that differ between machines.

    Raises:
        PackageError: if two wheels have different files of one name.
    """
    found: dict[str, bytes] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        for name, content in _wheel_files(wheel):
            path = f"{SITE_PACKAGES}/{name}"
            if found.setdefault(path, content) != content:
                raise PackageError(f"{wheel.name} and another wheel have different files {name}")
    return found


def write_archive(content: Mapping[str, bytes], target: Path) -> None:
    """Write files into an archive, in order and with fixed times and modes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(content):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, _REGULAR_FILE, _UNIX
            archive.writestr(entry, content[name])


def format_listing(content: Mapping[str, bytes]) -> str:
    """Return a line for each file: its size in bytes, its SHA-256 digest and its path."""
    lines = (f"{len(data):>10} {hashlib.sha256(data).hexdigest()} {name}\n" for name, data in sorted(content.items()))
    return "".join(lines)


def unpack(archive: Path, folder: Path) -> None:
    """Replace a folder by the content of an archive."""
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)


def _matching(root: Path, folder: str, names: Iterable[str]) -> Iterator[PurePosixPath]:
    for path in sorted((root / folder).rglob("*")):
        within = path.relative_to(root)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in within.parts)
        if path.is_file() and not hidden and _has_name(path, names):
            yield PurePosixPath(within)


def _parents(name: str) -> Iterator[str]:
    yield from (str(parent) for parent in PurePosixPath(name).parents if parent.parts)


def _has_name(path: Path, names: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path.name, name) for name in names)


def _wheel_files(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a wheel for site-packages. Scripts and headers are not used in the cloud."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            name = _installed_name(PurePosixPath(entry.filename))
            if name and not entry.is_dir():
                yield name, archive.read(entry)


def _installed_name(path: PurePosixPath) -> str:
    """Return the path of a wheel's file in site-packages, or an empty string for an excluded file."""
    if "__pycache__" in path.parts or path.suffix == ".pyc":
        return ""
    if not path.parts[0].endswith(".data"):
        return str(path)
    return "/".join(path.parts[2:]) if path.parts[1] in _INSTALLED else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
