"""What an operator runs on a command line."""
