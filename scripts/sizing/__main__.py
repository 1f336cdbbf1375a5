"""Command that estimates the sizes, monthly quantities and costs of a deployment: ``python -m scripts.sizing``.

Costs are printed if prices are given. Exit codes: 0 for a printed report, also if the load exceeds limits; 2 for
invalid options or prices.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from scripts.sizing.load import EXAMPLES, Load
from scripts.sizing.model import (
    calculate_monthly_costs,
    calculate_monthly_quantities,
    compute_deployment_sizes,
    find_exceeded_limits,
)
from scripts.sizing.prices import read_currency_and_prices
from scripts.sizing.report import Costs, build_json_report, build_text_report

WRONG_OPTIONS = 2


def main(arguments: Sequence[str]) -> int:
    """Print the report for the given command-line options, and return the exit code."""
    options = vars(_build_parser().parse_args(arguments))
    base = EXAMPLES[options["example"]] if options["example"] else Load()
    given = {field.name: options[field.name] for field in fields(Load) if options[field.name] is not None}
    try:
        sizes = compute_deployment_sizes(replace(base, **given))
        quantities = calculate_monthly_quantities(sizes)
        costs = None
        if options["prices"]:
            currency, prices = read_currency_and_prices(options["prices"], quantities)
            costs = Costs(currency, calculate_monthly_costs(quantities, prices))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return WRONG_OPTIONS
    limits = find_exceeded_limits(sizes)
    if options["json"]:
        sys.stdout.write(json.dumps(build_json_report(sizes, quantities, limits, costs), indent=2) + "\n")
    else:
        sys.stdout.write(build_text_report(sizes, quantities, limits, costs) + "\n")
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.sizing",
        description="Size a deployment; see docs/how-to/size-a-deployment.md.",
    )
    parser.add_argument("--example", choices=EXAMPLES, help="start from an example instead of the defaults")
    parser.add_argument("--prices", type=Path, metavar="FILE", help="price file; without it no costs are printed")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    for field in fields(Load):
        default = getattr(Load(), field.name)
        option = f"--{field.name.replace('_', '-')}"
        text = f"default {default}"
        if isinstance(default, bool):
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=text)
        else:
            parser.add_argument(option, type=type(default), default=None, help=text, metavar="N")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
