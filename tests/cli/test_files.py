"""Files are written back in their own encoding, line ends and mode, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spec_lsp.cli.files import Rewritten, encoding_of, rewrite, with_line_ends_of, write_text
from spec_lsp.files import Area, UnreadableError, checkout_of, read_named, workspace_of
from spec_lsp.workspace import decode

TEXTS = [
    ("plain", b"a=1\nb=2\n"),
    ("utf-8", "name=Zoë 😀\n".encode()),
    ("byte order mark", b"\xef\xbb\xbfa=1\n"),
    ("crlf", b"a=1\r\nb=2\r\n"),
    ("utf-16-le", "a=1 é\n".encode("utf-16-le")),
    ("utf-16 with mark", b"\xff\xfe" + "a=1 é\n".encode("utf-16-le")),
    ("utf-16-be with mark", b"\xfe\xff" + "a=1 é\n".encode("utf-16-be")),
    ("latin-1", "caf\xe9=1\n".encode("latin-1")),
    ("no last line end", b"a=1"),
    ("empty", b""),
]


def write(path: Path, old: str, new: str) -> None:
    rewrite({str(path): Rewritten(old, new)}, Area((path.parent,)))


@pytest.mark.parametrize(("name", "data"), TEXTS, ids=[n for n, _ in TEXTS])
def test_reading_and_encoding_are_inverse(name: str, data: bytes) -> None:
    assert encoding_of(data).encode(decode(data)) == data


@pytest.mark.parametrize(("name", "data"), TEXTS, ids=[n for n, _ in TEXTS])
def test_rewriting_changes_only_what_is_changed(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f.sh"
    path.write_bytes(data)
    old, new = decode(data), decode(data).replace("1", "3")
    write(path, old, new)
    assert decode(path.read_bytes()) == new
    write(path, new, old)
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["f.sh"]


def test_mode_and_link_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.sh", tmp_path / "link.sh"
    real.write_text("a=1\n")
    real.chmod(0o754)
    link.symlink_to(real)
    write(link, "a=1\n", "a=2\n")
    assert link.is_symlink()
    assert real.read_text() == "a=2\n"
    assert real.stat().st_mode & 0o777 == 0o754


def test_a_character_the_encoding_lacks_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "f.sh"
    path.write_bytes("caf\xe9\n".encode("latin-1"))
    with pytest.raises(UnreadableError, match="latin-1"):
        write(path, "caf\xe9\n", "→")
    assert path.read_bytes() == "caf\xe9\n".encode("latin-1")


def test_broken_utf_16_is_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "f.sh"
    path.write_bytes(b"\xff\xfea\x00\x00\xd8x")
    with pytest.raises(UnreadableError, match="not valid text"):
        write(path, decode(path.read_bytes()), "b")


@pytest.mark.parametrize(
    ("make", "says"), [(lambda p: None, "does not exist"), (lambda p: p.mkdir(), "is not a regular file")]
)
def test_what_cannot_be_read_says_why(make: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    make(path)  # type: ignore[operator]
    with pytest.raises(UnreadableError, match=says):
        read_named(str(path))


def test_a_report_gets_the_usual_mode(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_text(str(path), "[]\n")
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_report_into_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot be written"):
        write_text(str(tmp_path / "no/r.json"), "")


@pytest.mark.parametrize(
    ("text", "insertion", "expected"),
    [
        ("a\r\nb\r\n", "x\ny", "x\r\ny"),
        ("a\r\nb\r\n", "x\r\ny", "x\r\ny"),
        ("a\nb\n", "x\ny", "x\ny"),
        ("a\r\nb\n", "x\ny", "x\ny"),
    ],
)
def test_inserted_lines_end_as_the_file_s_do(text: str, insertion: str, expected: str) -> None:
    assert with_line_ends_of(text, insertion) == expected


# --- fix writes only what it may ------------------------------------------------------------------------------------------


def test_a_link_that_leads_out_is_not_written_and_nothing_else_is(tmp_path: Path) -> None:
    inside = tmp_path / "w"
    inside.mkdir()
    (tmp_path / "out.sh").write_text("a=1\n")
    (inside / "link.sh").symlink_to("../out.sh")
    (inside / "own.sh").write_text("b=1\n")
    texts = {str(inside / "own.sh"): Rewritten("b=1\n", "b=2\n"), str(inside / "link.sh"): Rewritten("a=1\n", "a=2\n")}
    with pytest.raises(UnreadableError, match="lies outside the workspace: it is not changed"):
        rewrite(texts, Area((inside,)))
    assert (tmp_path / "out.sh").read_text() == "a=1\n"
    assert (inside / "own.sh").read_text() == "b=1\n"
    assert sorted(os.listdir(inside)) == ["link.sh", "own.sh"]


def test_the_other_names_of_a_file_keep_what_they_had(tmp_path: Path) -> None:
    inside = tmp_path / "w"
    inside.mkdir()
    (tmp_path / "out.sh").write_text("a=1\n")
    os.link(tmp_path / "out.sh", inside / "same.sh")
    write(inside / "same.sh", "a=1\n", "a=2\n")
    assert (inside / "same.sh").read_text() == "a=2\n"
    assert (tmp_path / "out.sh").read_text() == "a=1\n"


def test_a_file_that_somebody_else_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_text("a=3\n")
    with pytest.raises(UnreadableError, match="changed by somebody else"):
        write(path, "a=1\n", "a=2\n")
    assert path.read_text() == "a=3\n"


# --- paths of any length -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["a/" * 200_000, "../x/" * 100_000, "a" * 1_000_000])
def test_a_path_that_no_system_takes_is_not_followed(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def followed(path: object, **_: object) -> str:
        raise AssertionError(path)

    area = Area((tmp_path,))
    monkeypatch.setattr(os.path, "realpath", followed)
    for read in (area.read, read_named):
        with pytest.raises(UnreadableError):
            read(f"{tmp_path}/{path}", 10)


def test_a_checkout_is_looked_for_above_a_path_of_any_depth(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    deep = os.path.join(tmp_path, *["a"] * 3000)
    assert checkout_of(deep) == str(tmp_path)
    assert workspace_of([deep]) == (str(tmp_path),)
