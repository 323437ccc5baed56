"""Regular expressions that are compiled when they are first used.

Three hundred of them stand in the modules, and compiling them took a fifth of the start of the program; a file needs a third of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:

    def expression(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """The compiled expression. One that is ill-formed raises re.error when it is first used."""

else:

    class expression:  # noqa: N801
        """The compiled expression, made when a method is first asked for: from then on the methods are its own."""

        __slots__ = (
            "_flags",
            "findall",
            "finditer",
            "flags",
            "fullmatch",
            "match",
            "pattern",
            "search",
            "split",
            "sub",
            "subn",
        )

        def __init__(self, pattern: str, flags: int = 0) -> None:
            self.pattern, self._flags = pattern, flags

        def __getattr__(self, name: str) -> Any:
            if name not in _OF_A_PATTERN:
                raise AttributeError(name)
            compiled = re.compile(self.pattern, self._flags)
            for each in _OF_A_PATTERN:
                setattr(self, each, getattr(compiled, each))
            return getattr(compiled, name)

    _OF_A_PATTERN = ("findall", "finditer", "flags", "fullmatch", "match", "search", "split", "sub", "subn")
