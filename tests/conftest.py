"""What holds for all tests."""

from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing about the rule.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")
