"""The Bicep templates as the parser sees them."""

import json
import re
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pycep import BicepParser

_EACH = re.compile(r"\$\{each\}|^each$")
BICEP = Path(__file__).parents[2] / "infra" / "bicep"


@cache
def _parsed(text: str) -> dict[str, Any]:
    # The parser takes up to a second for a file; the same text is parsed once.
    return dict(BicepParser().parse(text=text))


class Template:
    """One file.

    Args:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    @property
    def tree(self) -> dict[str, Any]:
        """What the parser made of it."""
        return _parsed(self.text)

    @property
    def required(self) -> set[str]:
        """The parameters that a caller must give."""
        return {name for name, each in self.parts("parameters").items() if each["default"] is None}

    @property
    def parameters(self) -> set[str]:
        """The parameters that a caller may give."""
        return set(self.parts("parameters"))

    @property
    def outputs(self) -> set[str]:
        """The names of what it gives."""
        return set(self.parts("outputs"))

    @property
    def symbols(self) -> set[str]:
        """Every name that it declares."""
        return {name for part in ("parameters", "variables", "resources", "modules") for name in self.parts(part)}

    def variable(self, name: str) -> Any:
        """Return the value of a variable."""
        return self.parts("variables")[name]["value"]

    def resources(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Give symbol, type with version, and body of each resource that it makes."""
        for symbol, each in self.parts("resources").items():
            if not each["existing"]:
                yield symbol, f"{each['type']}@{each['api_version']}", body(each["config"])

    def modules(self) -> Iterator[tuple[str, Path, dict[str, Any]]]:
        """Give symbol, file and parameters of each module that it uses."""
        for symbol, each in self.parts("modules").items():
            yield symbol, self.path.parent / each["detail"]["path"], body(each["config"])["params"]

    def items(self, config: dict[str, Any]) -> list[str]:
        """Return what a loop over a variable's texts goes over; one empty text where there is no loop."""
        if "loop_type" not in config:
            return [""]
        items = self.parts("variables").get(config["loop_type"]["detail"]["array_name"], {}).get("value")
        return items if isinstance(items, list) else []

    def parts(self, name: str) -> dict[str, Any]:
        """Return what the file declares of a kind, by name."""
        return dict(self.tree.get(name) or {})


class Templates:
    """All files of a folder.

    Args:
        folder: where they are.
    """

    def __init__(self, folder: Path = BICEP) -> None:
        self.folder = folder

    @cached_property
    def all(self) -> list[Template]:
        """Every template."""
        return [Template(path) for path in sorted(self.folder.glob("**/*.bicep"))]

    def named(self, name: str) -> Template:
        """Return a template by its file's name, without the suffix."""
        return next(each for each in self.all if each.path.stem == name)

    def json(self, name: str) -> Any:
        """Return the content of a JSON file."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def names(self, template: str, kind: str) -> set[str]:
        """Return the names of the resources of a type, each of a loop over a variable by itself."""
        found: set[str] = set()
        source = self.named(template)
        for each in source.parts("resources").values():
            if each["existing"] or each["type"] != kind:
                continue
            name = str(body(each["config"])["name"]).rsplit("/", 1)[-1]
            found |= {_EACH.sub(item, name) for item in source.items(each["config"])}
        return found


def body(config: dict[str, Any]) -> dict[str, Any]:
    """Return a resource's or module's own object, out of its condition or loop."""
    while "config" in config:
        config = config["config"]
    return config
