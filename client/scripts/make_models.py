"""Generate the module ``oi.models`` from the service's OpenAPI document.

With ``--check``, write nothing, and report whether the module is up to date.

Without a file name, the script builds the document of the service in this repository, with every operation and without
a workspace. With a file name, it reads a document that a service returned:
``curl $URL/oi-api/openapi -H "Authorization: Bearer $TOKEN"``.

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


def build_service_openapi_document() -> dict[str, Any]:
    """Build the OpenAPI document of the service, without the operations that the configuration of a workspace adds."""
    sys.path.insert(0, str(ROOT))
    from functions import GROUPS  # noqa: PLC0415  the service is importable only from here on
    from functions.lazy_groups import load_operations  # noqa: PLC0415
    from shared.openapi.document import build_openapi_document  # noqa: PLC0415
    from shared.openapi.schemas import SchemaRegistry  # noqa: PLC0415

    operations = asyncio.run(load_operations(GROUPS))
    return build_openapi_document(operations, "Workspace", "", {}, SchemaRegistry())


def generate_models_source(openapi_document: dict[str, Any]) -> str:
    """Generate the source code of ``oi.models`` from the named schemas of an OpenAPI document.

    Raises:
        RuntimeError: the generator is not installed, or fails.
    """
    if not GENERATOR.exists():
        raise RuntimeError(f"{GENERATOR} is missing; run `make .venv-clients/installed`")
    schemas = openapi_document["components"]["schemas"]
    reduced = {
        "openapi": openapi_document["openapi"],
        "info": openapi_document["info"],
        "paths": {},
        "components": {"schemas": schemas},
    }
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "openapi.json"), Path(folder, "models.py")
        source.write_text(json.dumps(reduced), encoding="utf-8")
        _run_command_and_get_output([str(GENERATOR), "--input", str(source), "--output", str(output), *_OPTIONS])
        text = output.read_text(encoding="utf-8")
    return _format_code(_add_missing_docstrings(text, schemas))


def _add_missing_docstrings(source_code: str, schemas: dict[str, Any]) -> str:
    """Add a docstring to each type alias and class for which the generator writes none."""

    def build_docstring(type_name: str) -> str:
        return schemas.get(type_name, {}).get("description") or _describe_type_use(type_name, source_code)

    documented = _UNDOCUMENTED.sub(lambda match: f'{match[0]}"""{build_docstring(match[1])}"""\n', source_code)
    documented = re.sub(r'"""\n(.+)\n"""', r'"""\1"""', documented)
    return re.sub(
        r'^class (\w+)\(TypedDict\):\n(?!    """)',
        lambda match: f'{match[0]}    """{build_docstring(match[1])}"""\n',
        documented,
        flags=re.MULTILINE,
    )


def _describe_type_use(type_name: str, source_code: str) -> str:
    """Return a docstring for a generated type: a sentence that names a property whose values have this type."""
    owner, uses = "", []
    for line in source_code.splitlines():
        if found := re.match(r"class (\w+)\(|(\w+) = TypedDict\(", line):
            owner = found[1] or found[2]
        elif found := re.fullmatch(rf"\s+['\"]?(\w+)['\"]?: ([\w\[\] |,]*\b{type_name}\b[\w\[\] |,]*)", line):
            uses.append((found[1], owner, "Element" if f"list[{type_name}]" in found[2] else "Value"))
    if not uses:
        return f"JSON value ``{type_name}`` in requests or replies."
    member, model, role = uses[0]
    return f"{role} of the property ``{member}``{' of' if len(uses) == 1 else ', for example of'} ``{model}``."


def _format_code(source_code: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    named = ["--stdin-filename", str(TARGET), "-"]
    fixed = _run_command_and_get_output(
        [*ruff, "check", "--fix-only", "--unsafe-fixes", "--select", "D,I,UP,F401", "--quiet", *named], source_code
    )
    return _run_command_and_get_output([*ruff, "format", *named], fixed)


def _run_command_and_get_output(command: list[str], stdin_text: str | None = None) -> str:
    done = subprocess.run(command, input=stdin_text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr}")
    return done.stdout


def main(arguments: list[str]) -> int:
    """Write ``oi.models``, or with ``--check`` compare the generated code with the file.

    Return 0 for success, 1 if code and file differ with ``--check``, or 2 if the generator fails.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", nargs="?", type=Path, help="OpenAPI document, JSON")
    parser.add_argument("--check", action="store_true", help="compare the module and write nothing")
    options = parser.parse_args(arguments)
    document = json.loads(options.document.read_bytes()) if options.document else build_service_openapi_document()
    try:
        text = generate_models_source(document)
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
