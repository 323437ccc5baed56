"""SGLang in a process of its own: what it answers, what it may not do, and every way in which it cannot be asked."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.asking.devices import NAMES, device_for
from spec_lsp.asking.process import CannotAskError, Limits, SGLang
from spec_lsp.facts.hardware import DEVICES, FAMILIES, find
from tests.asking.fake import write

Json = dict[str, Any]


def sglang(packages: Path, gpu: str = "h100", **more: Any) -> SGLang:
    hardware = find(gpu)
    device = device_for(hardware) if hardware else None
    assert device is not None
    more.setdefault("limits", Limits(starting=60, asking=2))
    return SGLang(sys.executable, device, packages=[str(packages)], **more)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SGLang]:
    with sglang(write(tmp_path_factory.mktemp("packages"))) as one:
        yield one


@pytest.fixture
def ask(warm: SGLang, tmp_path: Path) -> Any:
    (tmp_path / "own.py").write_text("open('ran', 'w')\n")

    def ask_(*argv: str, **more: Any) -> Json:
        [answer] = warm.ask([{"argv": ["--model-path", "m", *argv], "cwd": str(tmp_path), **more}])
        return answer

    return ask_


def test_what_is_accepted(ask: Any) -> None:
    answer = ask("--page-size", "16")
    assert answer["outcome"] == "ok"
    assert answer["resolved"] | {"page_size": 16, "attention_backend": "fa3"} == answer["resolved"]
    assert answer["resolved"]["device_name"] == "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("argv", "outcome", "kind", "words", "where"),
    [
        (
            ["--page-size", "32"],
            "refused",
            "ValueError",
            "page_size 32 does not suit m",
            "server_args.py:__post_init__",
        ),
        (["--tp-size", "9"], "refused", "ValueError", "--tp-size is more", "server_args.py:check_server_args"),
        (["--page-size", "x"], "argparse", "SystemExit", "argument --page-size: invalid int value: 'x'", ""),
        (["--misbehave", "crash"], "crashed", "KeyError", "'missing'", "server_args.py:_crash"),
        (["--misbehave", "exit"], "unanswered", "Ended", "without a word", ""),
        (["--misbehave", "hang"], "unanswered", "Ended", "longer than 2 seconds", ""),
        (["--misbehave", "spin"], "unanswered", "Ended", "longer than 2 seconds", ""),
    ],
)
def test_what_is_not(ask: Any, argv: list[str], outcome: str, kind: str, words: str, where: str) -> None:
    answer = ask(*argv)
    assert (answer["outcome"], answer["error"]["type"]) == (outcome, kind)
    assert words in answer["error"]["message"]
    assert (answer["error"]["where"] or "").startswith(where)


@pytest.mark.parametrize("how", ["program", "shell", "write", "remove", "network", "foreign"])
def test_what_it_may_not_do(ask: Any, how: str, tmp_path: Path) -> None:
    """Nothing is started, changed or reached, and what comes with a model is not run."""
    before = {p: p.read_text() for p in tmp_path.iterdir()}
    answer = ask("--misbehave", how)
    assert answer["outcome"] == "unanswered"
    assert answer["denied"]
    assert {p: p.read_text() for p in tmp_path.iterdir()} == before


def test_nor_may_a_module_that_a_launch_brings_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a child imported is imported for the next ones: that may start no program either, though it swallows that it was kept from it."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    case = {"argv": ["--model-path", "m", "--misbehave", "meddling"]}
    with sglang(write(tmp_path)) as one:
        first, second, third = one.ask([case, case, {"argv": ["--model-path", "m"]}])
    assert first["denied"] == ["a program: touch"]
    assert second["outcome"] == third["outcome"] == "ok"
    assert third["denied"] == []
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell what a process has")
def test_a_file_without_end_takes_no_memory_without_end(tmp_path: Path) -> None:
    cases = [{"argv": ["--model-path", "m", *more]} for more in (["--misbehave", "devour"], [])]
    with sglang(write(tmp_path), limits=Limits(starting=60, asking=30, memory=64 << 20)) as one:
        first, second = one.ask(cases)
    assert (first["outcome"], first["error"]["type"]) == ("unanswered", "MemoryError")
    assert second["outcome"] == "ok"


def test_variables_files_and_fields_of_a_case_are_its_own(warm: SGLang, ask: Any) -> None:
    assert ask(env={"SGLANG_ANGRY": "1"})["error"]["message"] == "angry"
    assert ask()["outcome"] == "ok"
    assert (
        ask("--attention-backend", "{files}/a/b.yaml", files={"a/b.yaml": "x"})["resolved"]["attention_backend"]
        == "{files}/a/b.yaml"
    )
    assert ask(files={"../../escapes": "x"})["outcome"] == "ok"
    [answer] = warm.ask([{"fields": {"model_path": "m", "page_size": 4}}])
    assert answer["resolved"]["page_size"] == 4
    [answer] = warm.ask([{"fields": {"model_path": "m", "no_such": 4}}])
    assert "no_such" in answer["error"]["message"]


def test_answers_come_in_the_order_of_the_questions(tmp_path: Path) -> None:
    with sglang(write(tmp_path), limits=Limits(starting=60, asking=20, jobs=4)) as one:
        sizes = list(range(40, 80))
        answers = one.ask({"argv": ["--model-path", "m", "--page-size", str(n)]} for n in sizes)
        assert [a["resolved"]["page_size"] for a in answers] == sizes


def test_it_stays_warm_and_is_started_again_when_it_has_gone(tmp_path: Path) -> None:
    one = sglang(write(tmp_path))
    case = {"argv": ["--model-path", "m"]}
    assert [a["outcome"] for a in one.ask([case])] == ["ok"]
    process = one._process
    assert [a["outcome"] for a in one.ask([case])] == ["ok"]
    assert one._process is process
    assert process is not None
    process.kill()
    process.wait()
    assert [a["outcome"] for a in one.ask([case])] == ["ok"]
    one.close()
    assert one._process is None


def test_what_one_case_imports_is_there_for_the_next_but_for_those_who_set_what_it_read(tmp_path: Path) -> None:
    case = {"argv": ["--model-path", "m", "--misbehave", "late"]}
    other = {**case, "env": {"SGLANG_LATE": "x"}}
    unrelated = {**case, "env": {"SGLANG_OTHER": "x"}}

    def told(one: SGLang, *cases: Json) -> list[list[str]]:
        return [a["resolved"]["api_key"].split() for a in one.ask(cases)]

    with sglang(write(tmp_path)) as one:
        [first] = told(one, other)  # whose own process imports it, with its variable
        second, third, fourth, fifth, sixth = told(one, case, unrelated, other, case, other)
    assert [v for v, _ in (first, second, third, fourth, fifth, sixth)] == ["x", "none", "none", "x", "none", "x"]
    assert second[1] == third[1] == fifth[1] != first[1]
    assert len({first[1], second[1], fourth[1], sixth[1]}) == 4


def test_a_package_that_does_not_load_is_stood_in_for(warm: SGLang) -> None:
    ready = warm.ready()
    assert {"flashinfer", "sgl_kernel"} <= set(ready.stand_ins)
    assert (ready.version, ready.simulated) == ("0.5.23", True)


def test_the_platform_is_that_of_the_device(tmp_path: Path) -> None:
    write(tmp_path, server_args="import torch\nVERSIONS = (torch.version.cuda, torch.version.hip)\n" + "def prepare_server_args(argv):\n"
          "    raise ValueError(f'{VERSIONS} {torch.cuda.get_device_properties(0).gcnArchName} {torch.cuda.mem_get_info()[0] >> 20}')\n")  # fmt: skip
    said = {}
    for gpu in ("b200", "mi300x"):
        with sglang(tmp_path, gpu) as one:
            [answer] = one.ask([{"argv": []}])
            said[gpu] = answer["error"]["message"]
    assert said == {"b200": "('13.0', None)  183359", "mi300x": "(None, '7.0.0') gfx942 196592"}


def test_the_machines_own_gpu_comes_first_where_it_may(tmp_path: Path) -> None:
    write(tmp_path, real=True)
    with sglang(tmp_path, own=True) as one:
        assert (one.ready().device, one.ready().simulated) == ("NVIDIA H200", False)
    with sglang(tmp_path) as one:
        assert (one.ready().device, one.ready().simulated) == ("NVIDIA H100 80GB HBM3", True)


def test_every_gpu_that_is_known_can_be_simulated_or_says_that_it_cannot() -> None:
    for hardware in (*DEVICES.values(), *FAMILIES.values()):
        device = device_for(hardware)
        assert (device is None) == (hardware.platform in ("npu", "xpu"))
        assert device is None or device.hardware.capability == hardware.capability
    assert set(NAMES) == {d.name for d in DEVICES.values() if d.platform not in ("npu", "xpu")}


# --- it cannot be asked ------------------------------------------------------------------------------------------------


def why(one: SGLang) -> str:
    with pytest.raises(CannotAskError) as told, one:
        list(one.ask([{"argv": []}]))
    return str(told.value)


@pytest.mark.parametrize("doing", ["import", "answer"])
def test_it_is_ended_while_another_thread_asks(tmp_path: Path, doing: str) -> None:
    """Who waits for it learns that at once: a server that goes would wait for the thread."""
    write(tmp_path, **({"server_args": "import time\ntime.sleep(60)\n"} if doing == "import" else {}))
    one = sglang(tmp_path, limits=Limits(starting=60, asking=60))
    if doing == "answer":
        one.ready()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(why_asking, one, [{"argv": ["--model-path", "m", "--misbehave", "hang"]}])
        while one._process is None:
            time.sleep(0.01)
        time.sleep(0.5)
        began = time.monotonic()
        one.kill()
        assert f"ended before SGLang could {doing}" in asked.result()
    assert time.monotonic() - began < 10
    assert "ended before SGLang could import" in why(one)  # for good


def why_asking(one: SGLang, cases: list[Json]) -> str:
    with pytest.raises(CannotAskError) as told:
        list(one.ask(cases))
    return str(told.value)


def test_no_such_interpreter(tmp_path: Path) -> None:
    device = device_for(DEVICES["h100"])
    assert device is not None
    assert "cannot be started: No such file" in why(SGLang(str(tmp_path / "python"), device))
    (tmp_path / "text").write_text("no program")
    assert "cannot be started: Permission denied" in why(SGLang(str(tmp_path / "text"), device))


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    device = device_for(DEVICES["h100"])
    assert device is not None
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    program.chmod(0o755)
    assert "ended before SGLang could import: it is broken" in why(SGLang(str(program), device))
    program.write_text("#!/bin/sh\necho hello\n")
    assert "hello" in why(SGLang(str(program), device))


def test_no_sglang(tmp_path: Path) -> None:
    assert "has no SGLang" in why(sglang(write(tmp_path, without="sglang")))


def test_no_torch(tmp_path: Path) -> None:
    assert "No module named 'torch'" in why(sglang(write(tmp_path, without="torch")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import torch\ntorch.cuda.newly_needed()\n", "newly_needed"),
        ("def (", "SyntaxError"),
        ("import package_of_tomorrow\n", "package_of_tomorrow"),
    ],
)
def test_a_release_that_the_platform_does_not_fit(tmp_path: Path, text: str, said: str) -> None:
    told = why(sglang(write(tmp_path, server_args=text)))
    assert said in told
    assert "may be of a release that the simulated platform does not fit" in told


def test_an_import_without_end(tmp_path: Path) -> None:
    write(tmp_path, server_args="while True: pass\n")
    began = time.monotonic()
    assert "did not import within 1 seconds" in why(sglang(tmp_path, limits=Limits(starting=1)))
    assert time.monotonic() - began < 20


def test_what_is_in_the_current_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository that has a `torch.py`, or a `json.py`, is asked about like any other."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in ("json.py", "torch.py", "sitecustomize.py", "usercustomize.py"):
        (folder / name).write_text("open('ran', 'w')\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", ".")))
    with sglang(write(tmp_path / "packages")) as one:
        assert [a["outcome"] for a in one.ask([{"argv": ["--model-path", "m"], "cwd": str(folder)}])] == ["ok"]
    assert not (folder / "ran").exists()


def test_where_python_leaves_its_own_folder_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONSAFEPATH leaves no entry at the start of the path that could be dropped."""
    write(tmp_path)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    device = device_for(DEVICES["h100"])
    assert device is not None
    with SGLang(sys.executable, device) as one:
        assert one.ready().version == "0.5.23"
