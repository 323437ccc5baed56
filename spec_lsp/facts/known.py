"""The one way in which not knowing shows: reading what is not known raises `NotKnown`, and whoever asked says nothing."""

from __future__ import annotations


class NotKnown(Exception):  # noqa: N818 - a signal, not an error
    """A fact or a field was read that nobody can tell. `what` names it, `why` continues "unknown: "."""

    def __init__(self, what: str, why: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why


class NotGiven(NotKnown):
    """Nothing at all is told of it: a model whose config.json is not at hand, flags that `"$@"` may add.

    What was typed is then taken to stay as typed: it was typed for a model and for flags that go with it.
    """
