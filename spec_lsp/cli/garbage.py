"""How often Python looks for garbage: a check keeps most of the objects that it creates, and Python's default frequency would take a fifth
of the time."""

COLLECT_EVERY = 500_000
"""The number of new objects after which to look: some tens of MB."""
