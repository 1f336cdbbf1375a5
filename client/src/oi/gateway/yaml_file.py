"""YAML files in which no property may occur twice.

This is a separate module, because PyYAML belongs to the extra `mqtt` and is imported only to read a file.
"""

from pathlib import Path
from typing import Any

import yaml

from oi.gateway.sections import SettingsError


def load_yaml_file(path: Path) -> Any:
    """Read the value that a YAML file contains.

    Raises:
        SettingsError: the file cannot be read, is not YAML, or repeats a property of an object.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return yaml.load(file, _UniqueKeyLoader)  # noqa: S506  a subclass of the safe loader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"The file cannot be read: {error}") from None


class _UniqueKeyLoader(yaml.SafeLoader):
    """Safe loader that rejects repeated properties, of which PyYAML silently uses the last one."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose a YAML mapping; raise a SettingsError if a property occurs twice."""
        node = super().compose_mapping_node(anchor)
        first_lines: dict[Any, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in first_lines:
                raise SettingsError(
                    f"Line {line} repeats the property `{key.value}` of line {first_lines[name]}; remove one of them."
                )
            first_lines[name] = line
        return node
