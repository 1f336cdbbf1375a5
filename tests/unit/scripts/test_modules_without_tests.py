"""Tests of the list of modules without a test module."""

from pathlib import Path

from scripts.modules_without_tests import find_untested_and_count_testable_modules

FUNCTION = "def double(value: int) -> int:\n    return 2 * value\n"
PORT = 'class Store:\n    def read(self) -> int:\n        """Return the value."""\n        ...\n'


def write_file(folder: Path, path: str, text: str = "") -> None:
    """Write a file and its folders."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def test_a_test_module_has_the_name_of_its_module(tmp_path: Path) -> None:
    """A module counts as tested only if a test module with its name is in the mirrored folder."""
    write_file(tmp_path, "shared/auth/tokens.py", FUNCTION)
    write_file(tmp_path, "shared/auth/jose.py", FUNCTION)
    write_file(tmp_path, "tests/unit/shared/auth/test_tokens.py")
    write_file(tmp_path, "tests/unit/shared/test_jose.py")
    assert find_untested_and_count_testable_modules(tmp_path) == ([Path("shared/auth/jose.py")], 2)


def test_modules_of_declarations_need_no_tests(tmp_path: Path) -> None:
    """A module with only ports, models or constants needs no test module."""
    write_file(tmp_path, "shared/auth/__init__.py")
    write_file(tmp_path, "shared/auth/ports.py", PORT)
    write_file(tmp_path, "shared/auth/models.py", "class Key:\n    id: str\n")
    assert find_untested_and_count_testable_modules(tmp_path) == ([], 0)


def test_an_endpoint_group_is_tested_over_http(tmp_path: Path) -> None:
    """Tests over HTTP count as the tests of an endpoint group, but not of other modules."""
    write_file(tmp_path, "functions/alerts.py", FUNCTION)
    write_file(tmp_path, "shared/alerts.py", FUNCTION)
    write_file(tmp_path, "tests/service/test_alerts.py")
    assert find_untested_and_count_testable_modules(tmp_path) == ([Path("shared/alerts.py")], 2)


def test_the_contract_tests_of_a_port_count_for_its_adapters(tmp_path: Path) -> None:
    """The contract tests of a port count for its adapters; tests of emulators have their own folder."""
    write_file(tmp_path, "shared/backends/azure/cosmos_quotas.py", FUNCTION)
    write_file(tmp_path, "shared/backends/embedded/quotas.py", FUNCTION)
    write_file(tmp_path, "emulators/kusto/store.py", FUNCTION)
    write_file(tmp_path, "tests/adapters/test_quotas.py")
    write_file(tmp_path, "tests/emulators/kusto/test_store.py")
    assert find_untested_and_count_testable_modules(tmp_path) == ([], 3)
