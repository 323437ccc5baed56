"""How missing knowledge is signalled: reading something unknown raises `NotKnown`, and whoever asked reports nothing."""

from __future__ import annotations

ADAPTER = "adapter_config.json"
"""The file that states what a LoRA adapter changes; its facts are those of a path that ends in it."""


class NotKnown(Exception):  # noqa: N818 - a signal, not an error
    """A fact or a field was read that is unknown. `what` names it, `why` continues "unknown: "."""

    def __init__(self, what: str, why: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why


class NotGiven(NotKnown):
    """Nothing at all is known about it: a model without a config.json at hand, flags that `"$@"` may add.

    Typed values are then assumed to stay as typed, since the writer knows the model and those flags.
    """
