"""Documentation of replies: a type, an example and a description for the OpenAPI document.

The name of each ``TypedDict`` is the name of its schema in the OpenAPI document, and its docstring is the schema's
description. Some domains have a class of the same name, such as ``Checkpoint``; integrators rely on the schema names,
so these names stay. Other replies are declared in the modules of their handlers.
"""
