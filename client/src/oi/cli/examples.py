"""Usage examples for the help texts of commands."""

from collections.abc import Mapping

import click

_ITEMS: Mapping[str, str] = {"team": "ann@plant.example", "connections": "pump-rig", "surfaces": "cooling"}

_EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "alerts acknowledge": ("oi alerts acknowledge 01JA4Q --comment 'valve was closed'",),
    "alerts list": ("oi alerts list --state firing --severity critical",),
    "alerts rules delete": ("oi alerts rules delete too-hot",),
    "alerts rules list": ("oi alerts rules list",),
    "alerts rules put": ("oi alerts rules put too-hot rule.json",),
    "alerts rules show": ("oi alerts rules show too-hot",),
    "amendments approve": (
        "oi amendments approve 000000000007 --scope line-1",
        "oi amendments approve 000000000007 --scope line-1 --meaning approval",
    ),
    "amendments create": (
        (
            "oi amendments create --scope line-1 --entity-type Batch --entity-id B-1 \\\n"
            "    --reason-category other --reason-text 'swapped digits' \\\n"
            "    --original '{\"weight\": 41}' --amended '{\"weight\": 14}'"
        ),
    ),
    "amendments list": ("oi amendments list", "oi amendments list --scope line-1 --status approved"),
    "amendments reject": ("oi amendments reject 000000000007 --scope line-1 --reason 'no evidence'",),
    "audit export": (
        "oi audit export --scope line-1 -o line-1.json",
        "oi audit export --target AccessControl --format csv -o access.csv",
    ),
    "audit prove": ("oi audit prove 000000000042 --scope line-1",),
    "audit query": ("oi audit query --scope line-1 --entity-type Batch --limit 20",),
    "audit scopes": ("oi audit scopes",),
    "audit signatures": ("oi audit signatures --user-id ann@plant.example --from 2026-01-01T00:00:00Z",),
    "audit verify": ("oi audit verify --scope line-1", "oi audit verify --target AccessControl"),
    "gateway check": ("oi gateway check gateway.yaml",),
    "gateway run": ("oi gateway run gateway.yaml",),
    "gateway rejected": ("oi gateway rejected gateway.yaml --limit 5",),
    "keys create": (
        "oi keys create nightly-report --right Workspace.WarmQuery.Execute --expires-in-days 90",
        "oi keys create gateway --connection pump-rig --device 'rig-*'",
    ),
    "keys list": ("oi keys list",),
    "keys revoke": ("oi keys revoke abcdefgh",),
    "logout": ("oi logout",),
    "query approve": (
        "oi query approve latest-readings",
        "oi query approve latest-readings --meaning review",
        "oi query approve latest-readings --if-match '\"5d41402abc4b2a76\"'",
    ),
    "query list": ("oi query list",),
    "query put": ("oi query put latest-readings query.json",),
    "query reject": ("oi query reject latest-readings --comment 'limit the time range'",),
    "query show": ("oi query show latest-readings",),
    "status": ("oi status",),
    "webhooks create": ("oi webhooks create https://example.com/hook --event-type alert.firing",),
    "webhooks delete": ("oi webhooks delete 01JA4Q",),
    "webhooks deliveries": ("oi webhooks deliveries 01JA4Q --status failed",),
    "webhooks list": ("oi webhooks list",),
    "webhooks listen": ("oi webhooks listen --port 9000 --secret-file webhook.secret",),
    "webhooks put": ("oi webhooks put 01JA4Q webhook.json",),
    "webhooks retry": ("oi webhooks retry 01JA4Q 01JB7X",),
    "webhooks rotate-secret": ("oi webhooks rotate-secret 01JA4Q",),
    "webhooks show": ("oi webhooks show 01JA4Q",),
    "webhooks test": ("oi webhooks test 01JA4Q",),
    "whoami": ("oi whoami", "oi whoami --json"),
    "workspace apply": ("oi workspace apply plant.yaml", "oi workspace apply plant.yaml --yes"),
    "workspace export": ("oi workspace export -o plant.yaml",),
    "workspace plan": ("oi workspace plan plant.yaml",),
    "workspace show": ("oi workspace show",),
}


def add_examples_to_help(command_name: str, command: click.Command) -> None:
    """Add examples to the help texts of a command and of its subcommands.

    Args:
        command_name: words that follow ``oi`` on the command line to call the command.
        command: a command, or a group of commands.
    """
    if isinstance(command, click.Group):
        for below, each in command.commands.items():
            add_examples_to_help(f"{command_name} {below}", each)
        return
    examples = _EXAMPLES.get(command_name) or _build_examples_for_item_command(command_name)
    if examples:
        lines = "\n".join(f"  {line}" for line in examples)
        command.epilog = f"\b\n{'Example' if len(examples) == 1 else 'Examples'}:\n{lines}"


def _build_examples_for_item_command(command_name: str) -> tuple[str, ...]:
    """Return the example for a command that lists, shows or changes items of one kind, such as connections."""
    group, _, verb = command_name.partition(" ")
    if group not in _ITEMS:
        return ()
    key = _ITEMS[group]
    arguments = {"list": "", "show": f" {key}", "put": f" {key} item.json", "delete": f" {key}"}
    return (f"oi {command_name}{arguments[verb]}",) if verb in arguments else ()
