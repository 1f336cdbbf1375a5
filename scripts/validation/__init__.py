"""Evidence for the validation of a version: runs the tests that docs/explanation/regulated-plants.md lists."""
