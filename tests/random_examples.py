"""Number of random examples of each rule: few in a run of all tests, many in make soak."""

from typing import Final

from hypothesis import settings

TEST_EXAMPLES: Final = 40
SOAK_EXAMPLES: Final = 1_000


def scale_examples(examples: int) -> int:
    """Return the number of examples of a rule that needs another number than most rules.

    An explicit number would also hold in make soak, because it replaces the number of the profile.

    Args:
        examples: number of examples in a run of all tests; make soak takes 25 times as many, as for all other rules.
    """
    return examples * settings().max_examples // TEST_EXAMPLES
