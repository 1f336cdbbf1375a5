"""The live stream: who may listen to what, how impulses are handed on, and what is replayed before them."""
