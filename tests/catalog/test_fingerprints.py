"""What a fingerprint leaves out and what it does not, where functions are looked for, and what is shipped of each release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spec_lsp.catalog.fingerprints import definitions, find, fingerprints, index, shipped
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.resolution.following import followed, places, unplaced
from tests.sources.unpacked import unpacked

FUNCTION = '''
def handle_page_size(args: ServerArgs, size: int = 64) -> None:
    """Doc."""
    for name in args.names:
        if size > LIMIT:  # too large
            logger.warning(f"{size} is large")
            raise ValueError(f"{name} is too large")
    assert size, "none"
    args.page_size = size
'''
ALIKE = [
    ("size", "pages"),
    ("    assert", "    pages: int\n    assert"),
    ("name", "n"),
    ("args", "server_args"),
    (": int", ": Optional[int]"),
    (" -> None", ""),
    ('    """Doc."""\n', ""),
    ("  # too large", ""),
    ('            logger.warning(f"{size} is large")\n', ""),
    ('ValueError(f"{name} is too large")', 'ValueError("no")'),
    ('assert size, "none"', "assert size"),
]
OTHERWISE = [
    ("> LIMIT", ">= LIMIT"),
    ("64", "32"),
    ("LIMIT", "MOST"),
    (".page_size", ".pages"),
    ("ValueError", "TypeError"),
    ("assert size", "assert not size"),
    ("    args.page_size = size\n", ""),
    ("def ", "async def "),
    ("def ", "@cached\ndef "),
]


def written(folder: Path, text: str, file: str = "srt/server_args.py") -> Path:
    path = folder / "sglang" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return folder / "sglang"


def fingerprint(folder: Path, text: str) -> str:
    return next(p for k, p in fingerprints(written(folder, text)).items() if k.endswith("handle_page_size"))


@pytest.mark.parametrize(("old", "new"), ALIKE)
def test_what_changes_nothing(tmp_path: Path, old: str, new: str) -> None:
    changed = FUNCTION.replace(".page_size", ".§").replace("handle_page_size", "¤")
    changed = re.sub(rf"\b{old}\b", new, changed) if old.isalpha() else changed.replace(old, new)
    changed = changed.replace("§", "page_size").replace("¤", "handle_page_size")
    assert changed != FUNCTION
    assert fingerprint(tmp_path, changed) == fingerprint(tmp_path, FUNCTION)


@pytest.mark.parametrize(("old", "new"), OTHERWISE)
def test_what_changes_something(tmp_path: Path, old: str, new: str) -> None:
    changed = FUNCTION.replace(old, new)
    assert changed != FUNCTION
    assert fingerprint(tmp_path, changed) != fingerprint(tmp_path, FUNCTION)


def test_every_python_gives_the_same(tmp_path: Path) -> None:
    """Those that ship fingerprints and those that compare with them run different ones."""
    source = FUNCTION + "X = {'a': 1.5, **Y, 'b': [f'{z!r:>{w}}' f'{z}' 'k' for z in (*Q, None)]}\n"
    assert fingerprints(written(tmp_path, source)) == {
        "srt/server_args.py:handle_page_size": "9a5e93ab2d45",
        "srt/server_args.py:X": "4b484ba68ce7",
    }


def test_what_is_looked_at(tmp_path: Path) -> None:
    """Resolution's own files whole, of others what is asked for; broken files cost themselves alone."""
    root = written(tmp_path, "class ServerArgs:\n    def f(self):\n        return g()\n\ndef g():\n    pass\n")
    written(tmp_path, "try:\n    A = 1\nexcept E:\n    A = 2\nif X:\n    def h(): pass\n", "srt/arg_groups/fields/x.py")
    written(tmp_path, "def broken(:\n", "srt/arg_groups/broken.py")
    written(tmp_path, "class L:\n    def __init__(self): pass\n    def forward(self): pass\n", "srt/layers/linear.py")
    found = definitions(root, ["layers/linear.py:__init__"])
    assert list(found) == [
        "srt/server_args.py:ServerArgs.f",
        "srt/server_args.py:g",
        "srt/arg_groups/fields/x.py:A",
        "srt/arg_groups/fields/x.py:h",
        "srt/layers/linear.py:L.__init__",
    ]
    assert found["srt/server_args.py:ServerArgs.f"].uses == {"g"}
    assert (found["srt/server_args.py:g"].first, found["srt/server_args.py:g"].last) == (5, 6)
    assert fingerprints(tmp_path / "nothing") == {}


def test_a_link_out_of_the_package_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("def handle(): pass\n")
    root = written(tmp_path, "def own(): pass\n")
    (root / "srt" / "arg_groups").mkdir()
    (root / "srt" / "arg_groups" / "link.py").symlink_to(outside)
    assert list(fingerprints(root)) == ["srt/server_args.py:own"]


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("hicache_hook.py:handle_hicache", ("srt/arg_groups/hicache_hook.py:handle_hicache",)),
        ("arg_groups/hicache_hook.py:handle_hicache", ("srt/arg_groups/hicache_hook.py:handle_hicache",)),
        ("moved_hook.py:_handle_hicache", ("srt/arg_groups/hicache_hook.py:handle_hicache",)),
        ("server_args.py:handle_ssl", ("srt/server_args.py:ServerArgs._handle_ssl",)),
        ("pool.py:Pool", ("srt/mem/pool.py:Pool.__init__", "srt/mem/pool.py:Pool.alloc")),
        ("other.py:__init__", ()),
        ("own_pool.py:__init__", ()),
        ("other.py:alloc", ()),
    ],
)
def test_where_a_place_leads(place: str, found: tuple[str, ...]) -> None:
    known = [
        "srt/arg_groups/hicache_hook.py:handle_hicache",
        "srt/server_args.py:ServerArgs._handle_ssl",
        "srt/mem/pool.py:Pool.__init__",
        "srt/mem/pool.py:Pool.alloc",
    ]
    assert find(place, index(known)) == found


def test_every_release_has_its_fingerprints() -> None:
    assert [r for r in releases() if len(shipped(r)) < 200] == []
    assert dict(shipped(Release.parse("9.9.9"))) == {}


def test_every_place_is_a_function_of_the_newest_release() -> None:
    """A place that leads nowhere would let a build change what nobody notices."""
    newest = releases()[-1]
    assert unplaced(newest) == set()
    assert len(followed(newest)) > 250
    assert "hicache.handle_hicache" in followed(newest)["srt/arg_groups/hicache_hook.py:handle_hicache"].handlers


UNPLACED = {
    "adaptive_spec_params.py:validate_adaptive_initial_steps": "0.5.11 and 0.5.12 have no function of the kind",
    "dsa_backend.py:_validate_flashmla_sparse_q8_backend": "before 0.5.22 a part of the backend's methods",
    "frozen_kv_mtp_worker.py:_init_draft_attn_backend": "0.5.14 has another worker for it",
    "layers/attention/flashattention_backend.py:_maybe_init_local_attn_builder": "before 0.5.22 a part of the backend's methods",
    "mega_moe_hook.py:handle_mega_moe": "0.5.18 has its one adjustment in the resolution itself",
    "model_executor/model_runner_components/ngram_embedding_manager.py:from_model": "before 0.5.16 a part of the model runner",
    "nemotron_h_hook.py:apply_nemotron_h_defaults": "before 0.5.12 a part of the adjustments for single models",
    "overrides.py:_deepseek_v4_sm120_moe": "before 0.5.15 a part of the adjustments for single models",
    "overrides.py:_deterministic_rocm_rccl_check": "0.5.22 has it in the function around it",
}
"""Places that a release from 0.5.6 on has no function for, and where what they say stands there, as far as anybody looked."""


def test_places_that_a_release_lacks_are_listed() -> None:
    """But for functions of argument resolution that were parts of one, up to 0.5.14: builds compare that one."""
    newest, lacking = index(shipped(releases()[-1])), set()
    for release in releases():
        for place in unplaced(release) if release >= Release.parse("0.5.6") else ():
            keys = find(place, newest)
            was_part = release < Release.parse("0.5.15") and all(k.startswith("srt/arg_groups/") for k in keys)
            lacking |= set() if keys and was_part else {place}
    assert lacking == UNPLACED.keys()


@pytest.mark.parametrize("release", unpacked(), ids=str)
def test_what_is_shipped_is_what_the_sources_have(release: Release) -> None:
    assert fingerprints(unpacked()[release], places()) == shipped(release)
