"""Turns a change of settings into edits of the text, by the editor for the launch's syntax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spec_lsp.analysis.inputs import Workspace
from spec_lsp.analysis.reading import read_with
from spec_lsp.catalog.binding import Binding, Setting
from spec_lsp.catalog.model import Flag
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Change
from spec_lsp.syntax import edit
from spec_lsp.syntax.launch import Document, Edit
from spec_lsp.syntax.word import Place, Word, hull


@dataclass(slots=True)
class Printer:
    """Prints changes of one variant of one launch. `binding` binds that variant's words."""

    document: Document
    launch: int
    variant: int
    binding: Binding
    workspace: Workspace

    def print(self, change: Change, near: Sequence[str]) -> tuple[Edit, ...] | None:
        """The edits that make the change; a new flag is placed after the first field of `near` that is written.

        None if a part of it cannot be written.
        """
        steps = [self._set(field, value, near) for field, value in change.set.items()]
        steps += [self._drop(field) for field in change.drop]
        if change.set_env or change.drop_env:
            steps.append(self._environment(change))
        edits: list[Edit] = []
        for step in steps:
            if step is None:
                return None
            edits += step
        return tuple(edits) or None

    # --- fields

    def _set(self, field: str, value: Any, near: Sequence[str]) -> tuple[Edit, ...] | None:
        setting = self.binding.settings.get(field)
        if value is None:
            return () if setting is None else self._drop(field)
        if setting is None:
            return self._insert(field, value, near)
        if isinstance(value, bool):
            return self._switch(setting, value)
        if setting.from_config:
            return self._config_edit(setting, lambda editor, key: editor.set_value(key, value))
        if setting.keyword:
            return self.set_word(setting.values[0], source_of(value, setting.values[0]))
        return self._value(setting, texts_of(value))

    def _switch(self, setting: Setting, value: bool) -> tuple[Edit, ...] | None:
        if setting.from_config:
            return self._config_edit(setting, lambda editor, key: editor.set_value(key, value))
        if setting.keyword:
            return self.set_word(setting.values[0], source_of(value, setting.values[0]))
        if setting.definition.action != "boolean":
            return self._drop(setting.field) if value != setting.value else ()
        name = setting.definition.name.removeprefix("--")
        return self.rename(setting.flag, f"--{name}" if value else f"--no-{name}")

    def _value(self, setting: Setting, texts: Sequence[str]) -> tuple[Edit, ...] | None:
        if len(setting.values) != len(texts):
            return None
        edits: list[Edit] = []
        for word, text in zip(setting.values, texts, strict=True):
            done = self.set_word(word, text)
            if done is None:
                return None
            edits += done
        return tuple(edits)

    def _drop(self, field: str) -> tuple[Edit, ...] | None:
        setting = self.binding.settings.get(field)
        if setting is None:
            return None
        edits: list[Edit] = []
        for one in (*setting.losers, setting):
            done = self.remove(one)
            if done is None:
                return None
            edits += done
        return tuple(edits)

    def remove(self, setting: Setting) -> tuple[Edit, ...] | None:
        """Take out one flag with its values."""
        if setting.from_config:
            return self._config_edit(setting, lambda editor, key: editor.remove(key))
        editor = self._editor()
        at = editor.locate(setting.flag)
        if at is None:
            return None
        own = [w for w in setting.values if editor.locate(w) != at and (editor.locate(w) or (0, 1))[1] == 0]
        return _edits(editor.remove(at[0], 1 + len(own)))

    def _insert(self, field: str, value: Any, near: Sequence[str]) -> tuple[Edit, ...] | None:
        flag = self.binding.catalog.by_field.get(field)
        if flag is None or (value is False and flag.action != "boolean"):
            return () if flag is not None else None
        spelling = spelling_of(flag, field)
        neighbour = next((self.binding.settings[n] for n in near if n in self.binding.settings), None)
        if neighbour is None:
            neighbour = next(reversed(list(self.binding.settings.values())), None)
        if neighbour is not None and neighbour.from_config:
            new = spelling.removeprefix("--")
            return self._config_edit(neighbour, lambda editor, key: editor.insert(new, value, key))
        if self.document.launches[self.launch].program == "engine":
            near_value = neighbour.values[0] if neighbour is not None else None
            return self._insert_words(neighbour, field, (source_of(value, near_value),))
        if value is False:
            spelling = f"--no-{spelling.removeprefix('--')}"
        return self._insert_words(neighbour, spelling, () if isinstance(value, bool) else texts_of(value))

    def _insert_words(self, neighbour: Setting | None, spelling: str, values: Sequence[str]) -> tuple[Edit, ...] | None:
        editor = self._editor()
        after = -1
        for word in (neighbour.flag, *neighbour.values) if neighbour is not None else ():
            at = editor.locate(word)
            if at is None:
                return None
            after = max(after, at[0])
        return _edits(editor.insert(after, spelling, values))

    # --- words

    def set_word(self, word: Word, text: str) -> tuple[Edit, ...] | None:
        """Rewrite a value where it is written: in the flag, or in the assignment that it comes from."""
        editor = self._editor()
        at = editor.locate(word)
        return None if at is None else _edits(editor.set_value(at[0], text, at[1]))

    def name_first(self, first: Place, flag: str) -> tuple[Edit, ...] | None:
        """Write a flag before the first word, at `first`, which becomes its value; in a shell's command on the same line."""
        editor = self._editor()
        if editor.own.syntax == "shell":
            return (Edit(Place(first.document, first.start, first.start), f"{flag} "),)
        return _edits(editor.insert(-1, flag))

    def rename(self, word: Word, flag: str) -> tuple[Edit, ...] | None:
        """Give a flag another name, keeping a value behind `=`."""
        editor = self._editor()
        at = editor.locate(word)
        return None if at is None else _edits(editor.rename(at[0], flag))

    def set_flag(self, word: Word, text: str) -> tuple[Edit, ...] | None:
        """Rewrite a flag together with what follows its `=`."""
        editor = self._editor()
        at = editor.locate(word)
        return None if at is None else _edits(editor.set_value(at[0], text))

    def replace(self, word: Word, count: int, flags: Sequence[tuple[str, Sequence[str]]]) -> tuple[Edit, ...] | None:
        """Replace a flag and the `count - 1` words after it by other flags with their values."""
        editor = self._editor()
        at = editor.locate(word)
        return None if at is None else _edits(editor.replace(at[0], count, flags))

    def replace_key(self, key: Word, flags: Sequence[tuple[str, Sequence[str]]]) -> tuple[Edit, ...] | None:
        """Replace a key of a `--config` file by other keys."""
        pairs = {flag.removeprefix("--"): _loaded(values) for flag, values in flags}
        return self._edit_file(key, lambda editor: editor.replace(key_of(key), pairs))

    def remove_words(self, word: Word, count: int) -> tuple[Edit, ...] | None:
        editor = self._editor()
        at = editor.locate(word)
        return None if at is None else _edits(editor.remove(at[0], count))

    def split_value(self, word: Word) -> tuple[Edit, ...] | None:
        """`--config=x.yaml` as two words."""
        editor = self._editor()
        at = editor.locate(word)
        return None if at is None else _edits(editor.split(at[0]))

    def remove_word(self, word: Word) -> tuple[Edit, ...] | None:
        editor = self._editor()
        at = editor.locate(word)
        return None if at is None else _edits(editor.remove(at[0]))

    def set_key(self, key: Word, value: str) -> tuple[Edit, ...] | None:
        """Rewrite the value of a key of a `--config` file."""
        name = (key.text or "").removeprefix("--")
        return self._edit_file(key, lambda editor: editor.set_value(name, value))

    def set_switch(self, word: Word, value: bool) -> tuple[Edit, ...] | None:
        """Rewrite the value of a switch in a `--config` file; `word` was made from that value."""
        settings = self.binding.settings.values()
        keys = [s for s in settings if s.from_config and s.flag.place.document == word.place.document]
        before = [s for s in keys if s.flag.place.end <= word.place.start]
        if not before:
            return None
        setting = max(before, key=lambda s: s.flag.place.end)
        return self._config_edit(setting, lambda editor, key: editor.set_value(key, value))

    def value_of_key(self, key: Word) -> str | None:
        """The value of a key of a `--config` file, as a flag would be given it; None if it is `true`."""
        text = self._text(key.place.document)
        if text is None:
            return None
        start, end = self._embedded(key.place) or (0, None)
        value = edit.ConfigEditor(key.place.document, text, start, end).config.values.get(key_of(key))
        return None if value is True or value is None else str(value)

    def remove_key(self, key: Word) -> tuple[Edit, ...] | None:
        """Remove a key from a `--config` file."""
        return self._edit_file(key, lambda editor: editor.remove(key_of(key)))

    def rename_key(self, word: Word, key: str) -> tuple[Edit, ...] | None:
        """Give a key of a `--config` file another name."""
        return self._edit_file(word, lambda editor: editor.rename(key_of(word), key))

    def _editor(self) -> edit.WordEditor:
        def read(path: str) -> str | None:
            found = self.workspace.read(self.document.name, path)
            return found[1] if found else None

        others = {
            place.document
            for word in self.document.launches[self.launch].variants[self.variant].words
            for place in (word.place, *(f.place for f in word.fragments))
        } - {self.document.name}
        texts = {name: text for name in others if (text := self._text(name)) is not None}
        return edit.editor_of(self.document, self.launch, self.variant, read=read, parse=read_with, texts=texts)

    # --- config files

    def _config_edit(
        self, setting: Setting, operation: Callable[[edit.ConfigEditor, str], edit.WordChange | None]
    ) -> tuple[Edit, ...] | None:
        key = key_of(setting.flag)
        return self._edit_file(setting.flag, lambda editor: operation(editor, key))

    def _edit_file(
        self, word: Word, operation: Callable[[edit.ConfigEditor], edit.WordChange | None]
    ) -> tuple[Edit, ...] | None:
        name = word.place.document
        text = self._text(name)
        if text is None:
            return None
        start, end = self._embedded(word.place) or (0, None)
        return _edits(operation(edit.ConfigEditor(name, text, start, end)))

    def _embedded(self, place: Place) -> tuple[int, int] | None:
        """Where a document writes the file that contains `place` (a here-document); None for a file of its own."""
        for file in self.document.launches[self.launch].variants[self.variant].files:
            whole = hull(f.place for f in file.content.fragments) if file.content.fragments else file.content.place
            if whole.contains(place):
                text = self._text(whole.document) or ""
                line = max(text.rfind("\n", 0, whole.start), text.rfind("\r", 0, whole.start)) + 1
                return (whole.start if text[line : whole.start].strip(" ") else line), whole.end
        return None

    def _text(self, name: str) -> str | None:
        if name == self.document.name:
            return self.document.text
        found = self.workspace.read(self.document.name, name)
        return found[1] if found else None

    # --- environment variables

    def _environment(self, change: Change) -> tuple[Edit, ...] | None:
        """Edits for environment variables. Only written values are rewritten: `SGLANG_X=compact` to `SGLANG_X=static`."""
        env: Mapping[str, Word] = self.document.launches[self.launch].variants[self.variant].env
        edits = []
        for name, value in change.set_env.items():
            word = env.get(name)
            if word is None or word.text is None:
                return None
            place = word.place_of(0, len(word.text))
            if place is None:
                return None
            edits.append(Edit(place, value))
        for name in change.drop_env:
            done = self._drop_variable(env.get(name), name)
            if done is None:
                return None
            edits.append(done)
        return tuple(edits)

    def _drop_variable(self, word: Word | None, name: str) -> Edit | None:
        """Remove `NAME=value ` before a command, or its whole line if nothing else is on it (`export NAME=value`)."""
        place = word.place_of(0, len(word.text)) if word is not None and word.text is not None else None
        if place is None or place.document != self.document.name:
            return None
        text = self.document.text
        start = text.rfind(name + "=", 0, place.start + 1)
        line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
        if start < line or text[start + len(name) + 1 : place.start].strip("\"'"):
            return None
        end = place.end
        while end < len(text) and text[end] in "\"'":
            end += 1
        if text[line:start].strip() in ("", "export"):
            rest = text[end:].split("\n", 1)[0]
            if not rest.strip():
                return Edit(Place(self.document.name, line, min(end + len(rest) + 1, len(text))), "")
        while end < len(text) and text[end] in " \t":
            end += 1
        return Edit(Place(self.document.name, start, end), "")


def key_of(word: Word) -> str:
    """The key of a `--config` file from which a flag's word was made."""
    return (word.text or "").removeprefix("--")


def _loaded(values: Sequence[str]) -> Any:
    """A flag's values as YAML reads them."""
    read = [int(v) if v.isdecimal() else v for v in values]
    return True if not read else read[0] if len(read) == 1 else read


def texts_of(value: Any) -> tuple[str, ...]:
    """The argument words of a value."""
    if isinstance(value, (list, tuple)):
        return tuple(map(str, value))
    return (str(value),)


def source_of(value: Any, like: Word | None) -> str:
    """A value as Python source; text is quoted as the text that it replaces."""
    if not isinstance(value, str):
        return repr(list(value) if isinstance(value, tuple) else value)
    single = like is not None and like.known_start.startswith("'")
    return edit.quoted(value, "'" if single else '"')


def spelling_of(flag: Flag, field: str) -> str:
    """The best-known spelling: the one named like the field, else the first long one."""
    own = "--" + field.replace("_", "-")
    return own if own in flag.spellings else flag.name


def _edits(change: edit.WordChange | None) -> tuple[Edit, ...] | None:
    return None if change is None else change.edits
