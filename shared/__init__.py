"""The library behind the function app: one package per domain, each with its models, rules and ports."""
