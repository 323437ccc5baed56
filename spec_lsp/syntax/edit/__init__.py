"""The editors: they write a change of settings into the text, in the style of its surroundings.

`editor_of` gives the editor of a launch (`editors.py`), `ConfigEditor` edits a `--config` mapping. Each operation returns a `WordChange`,
or None when it cannot be written: the value is unknown, or comes from several places. A change is checked before it is returned: the
changed text must read as exactly the intended words.
"""

from __future__ import annotations

from spec_lsp.syntax.edit.change import WordChange, apply_edits
from spec_lsp.syntax.edit.editors import editor_of
from spec_lsp.syntax.edit.items import quoted
from spec_lsp.syntax.edit.mapping import ConfigEditor
from spec_lsp.syntax.edit.words import WordEditor

__all__ = ["ConfigEditor", "WordChange", "WordEditor", "apply_edits", "editor_of", "quoted"]
