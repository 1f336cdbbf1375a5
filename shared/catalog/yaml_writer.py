"""Writer of workspace documents as YAML that people can edit; YAML 1.1 and YAML 1.2 parsers read the same content."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from shared.catalog.document_parsers import CoreSchema

_WIDTH: Final = 120
_BLOCK: Final = re.compile(r"(?!\s)[^\r\t\x85\u2028\u2029\ufeff]*+\Z")


class _Dumper(yaml.CSafeDumper):
    """YAML writer that quotes each text that YAML 1.1 or YAML 1.2 would otherwise read as another type."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the name of the parameter belongs to the base class
        """Return True, so that the YAML writer never writes aliases."""
        return True


_Dumper.yaml_implicit_resolvers = {
    first: [
        *yaml.CSafeDumper.yaml_implicit_resolvers.get(first, ()),
        *CoreSchema.yaml_implicit_resolvers.get(first, ()),
    ]
    for first in {*yaml.CSafeDumper.yaml_implicit_resolvers, *CoreSchema.yaml_implicit_resolvers}
}


def _represent_text_as_yaml_node(dumper: yaml.CSafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if _can_use_block_style(text) else None)


def _can_use_block_style(text: str) -> bool:
    """Return whether a text can be written as a YAML block (``|``), in which lines need no quotes.

    The result is False for a text that ends with an empty line, because libyaml would then write an invalid document.
    """
    if "\n" not in text or text.endswith("\n\n") or not _BLOCK.match(text):
        return False
    return not any(line.endswith(" ") for line in text.split("\n"))


_Dumper.add_representer(str, _represent_text_as_yaml_node)


def iterate_yaml_parts(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the YAML text of a workspace document in parts: one part for each list item and each other property.

    Args:
        document: the workspace document as JSON values.
    """
    for name, value in document.items():
        if isinstance(value, list) and value:
            yield f"{name}:\n"
            for item in value:
                yield _dump_value([item])
        else:
            yield _dump_value({name: value})


def _dump_value(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text
