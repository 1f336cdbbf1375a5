"""How often and how much at once a principal may call, over all instances together."""
