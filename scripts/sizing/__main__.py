"""``python -m scripts.sizing``: print sizes, monthly quantities, limits and, with prices, costs.

Exit codes: 0 done, also where limits are exceeded; 2 wrong options or prices.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from scripts.sizing.load import EXAMPLES, Load
from scripts.sizing.model import calculate_costs, calculate_quantities, find_exceeded_limits, size_deployment
from scripts.sizing.prices import read_prices
from scripts.sizing.report import Costs, to_json, to_text

WRONG_OPTIONS = 2


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = vars(_parser().parse_args(arguments))
    base = EXAMPLES[options["example"]] if options["example"] else Load()
    given = {field.name: options[field.name] for field in fields(Load) if options[field.name] is not None}
    try:
        sizes = size_deployment(replace(base, **given))
        quantities = calculate_quantities(sizes)
        costs = None
        if options["prices"]:
            currency, prices = read_prices(options["prices"], quantities)
            costs = Costs(currency, calculate_costs(quantities, prices))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return WRONG_OPTIONS
    limits = find_exceeded_limits(sizes)
    if options["json"]:
        sys.stdout.write(json.dumps(to_json(sizes, quantities, limits, costs), indent=2) + "\n")
    else:
        sys.stdout.write(to_text(sizes, quantities, limits, costs) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.sizing", description="Size a deployment. docs/scale.md explains the model."
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
