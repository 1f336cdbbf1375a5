"""Documentation of replies for the OpenAPI document: a type, an example and a description of each.

A module has the name of a handler module in `functions` whose replies it documents. Some modules also document the
replies of related handler modules; their docstrings list them. Other replies are declared in the handler modules.
The modules `provenance_replies`, `query_reply` and `oauth_replies` of `functions` are different: they build replies.

The name of each ``TypedDict`` is the name of its schema in the OpenAPI document, and its docstring is the schema's
description. Some domains have a class of the same name, such as ``Checkpoint``; integrators rely on the schema names,
so these names stay.
"""
