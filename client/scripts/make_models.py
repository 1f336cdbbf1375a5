"""Generate the module ``oi.models`` from the service's OpenAPI document.

With ``--check``, write nothing but report a difference.

Without a file name it builds the document of this repository's service, with every operation and no workspace. With one
it reads a document that a service returned: ``curl $URL/oi-api/openapi -H "Authorization: Bearer $TOKEN"``.

The generator is datamodel-code-generator in ``.venv-clients`` (``make .venv-clients/installed``). The models are
``TypedDict`` classes: types of the JSON bodies that need no library at run time.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "client" / "src" / "oi" / "models.py"
GENERATOR = ROOT / ".venv-clients" / "bin" / "datamodel-codegen"
_HEADER = '''"""JSON bodies of the service, derived from its OpenAPI document by client/scripts/make_models.py.

Example:
    >>> from oi.models import EventBody
    >>> event: EventBody = {"ActionType": "Valve.Opened", "EntityType": "Valve", "EntityID": "V-7"}
"""
'''
_OPTIONS = (
    *("--input-file-type", "openapi", "--output-model-type", "typing.TypedDict", "--target-python-version", "3.11"),
    *("--use-schema-description", "--use-field-description", "--no-use-closed-typed-dict", "--disable-timestamp"),
    *("--formatters", "builtin", "--custom-file-header", _HEADER),
)
_UNDOCUMENTED = re.compile(r'^(\w+)(?:: TypeAlias = .+| = TypedDict\(\n(?:[ )}].*\n)*?\))\n(?!""")', re.MULTILINE)


def build_document() -> dict[str, Any]:
    """Build the OpenAPI document of all operations, without those that a workspace's configuration adds."""
    sys.path.insert(0, str(ROOT))
    from functions import GROUPS  # noqa: PLC0415  the service is importable only from here on
    from functions.lazy_groups import load_operations  # noqa: PLC0415
    from shared.openapi.document import build_document  # noqa: PLC0415
    from shared.openapi.schemas import SchemaRegistry  # noqa: PLC0415

    operations = asyncio.run(load_operations(GROUPS))
    return build_document(operations, "Workspace", "", {}, SchemaRegistry())


def generate_models(document: dict[str, Any]) -> str:
    """Generate the source code of ``oi.models`` from the named schemas of an OpenAPI document.

    Raises:
        RuntimeError: the generator is not installed, or fails.
    """
    if not GENERATOR.exists():
        raise RuntimeError(f"{GENERATOR} is missing; run `make .venv-clients/installed`")
    schemas = document["components"]["schemas"]
    reduced = {
        "openapi": document["openapi"],
        "info": document["info"],
        "paths": {},
        "components": {"schemas": schemas},
    }
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "openapi.json"), Path(folder, "models.py")
        source.write_text(json.dumps(reduced), encoding="utf-8")
        _run_command([str(GENERATOR), "--input", str(source), "--output", str(output), *_OPTIONS])
        text = output.read_text(encoding="utf-8")
    return _format_code(_add_alias_docstrings(text, schemas))


def _add_alias_docstrings(text: str, schemas: dict[str, Any]) -> str:
    """Add a docstring to each type alias for which the generator writes none."""

    def add(match: re.Match[str]) -> str:
        description = schemas.get(match[1], {}).get("description") or f"Values of ``{match[1]}``."
        return f'{match[0]}"""{description}"""\n'

    documented = re.sub(r'"""\n(.+)\n"""', r'"""\1"""', _UNDOCUMENTED.sub(add, text))
    return re.sub(
        r'^(class \w+\(TypedDict\):\n)(?!    """)',
        r'\1    """Object within another model."""\n',
        documented,
        flags=re.MULTILINE,
    )


def _format_code(text: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    named = ["--stdin-filename", str(TARGET), "-"]
    fixed = _run_command(
        [*ruff, "check", "--fix-only", "--unsafe-fixes", "--select", "D,I,UP,F401", "--quiet", *named], text
    )
    return _run_command([*ruff, "format", *named], fixed)


def _run_command(command: list[str], text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr}")
    return done.stdout


def main(arguments: list[str]) -> int:
    """Write ``oi.models``, or with ``--check`` compare it with the file.

    Return 0, 1 if they differ, or 2 if the generator fails.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", nargs="?", type=Path, help="OpenAPI document, JSON")
    parser.add_argument("--check", action="store_true", help="compare the module and write nothing")
    options = parser.parse_args(arguments)
    document = json.loads(options.document.read_bytes()) if options.document else build_document()
    try:
        text = generate_models(document)
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        print("oi.models is up to date")
        return 0
    if options.check:
        print("oi.models is stale; run client/scripts/make_models.py")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
