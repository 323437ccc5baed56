import pytest

from spec_lsp.catalog.release import Release


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5.9", Release(0, 5, 9)),
        ("v0.5.9", Release(0, 5, 9)),
        ("0.5.5.post3", Release(0, 5, 5, 1, 3)),
        ("0.5.5post3", Release(0, 5, 5, 1, 3)),
        ("0.5.6rc1", Release(0, 5, 6, -1, 1)),
        ("0.5.9+cu130", Release(0, 5, 9)),
        (" 0.5 ", Release(0, 5, 0)),
    ],
)
def test_reads(text: str, expected: Release) -> None:
    assert Release.parse(text) == expected


@pytest.mark.parametrize("text", ["", "latest", "0", "0.5.9-cu130", "0.5.x", "25.12-py3", "v0.5.9 "[::-1], "٠.5.9"])
def test_refuses_what_is_no_release(text: str) -> None:
    assert Release.read(text) is None
    with pytest.raises(ValueError, match="not a release"):
        Release.parse(text)


def test_order() -> None:
    names = [
        "0.4.10.post2",
        "0.5.0.dev3",
        "0.5.0rc1",
        "0.5.0rc2",
        "0.5.0",
        "0.5.0.post1",
        "0.5.2",
        "0.5.10",
        "0.5.12.post1",
    ]
    assert sorted(names, key=Release.parse) == names
    assert max(Release.parse("0.5.9"), Release.parse("0.5.10")) == Release.parse("0.5.10")


@pytest.mark.parametrize("name", ["0.5.9", "0.4.6.post5", "0.5.6rc1", "0.5.0.dev3"])
def test_prints_as_written(name: str) -> None:
    assert str(Release.parse(name)) == name
    assert repr(Release.parse(name)) == f"Release('{name}')"
