"""The shapes of replies, by endpoint group, with an example of each; the OpenAPI document is made from them."""
