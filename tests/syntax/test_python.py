"""Python: what is evaluated, what starts SGLang, and what is left alone."""

from __future__ import annotations

from itertools import product
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import apply_edits, editor_of
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.python import ways
from tests.draws import draws
from tests.syntax.support import argv, check_maps, told

HEAD = "import os, sys, shlex, json, subprocess\nimport sglang as sgl\n"


def read(text: str) -> list[Launch]:
    document = parse("a.py", text)
    check_maps(document)
    return list(document.launches)


def words(text: str) -> list[list[str]]:
    return [argv(v) for launch in read(HEAD + text) for v in launch.variants]


ITEMS: list[tuple[str, str, list[str]]] = [
    ("", "'--tp', '8'", ["--tp", "8"]),
    ("", "'--tp', str(8)", ["--tp", "8"]),
    ("", "'--tp', 8", ["--tp", "8"]),
    ("TP = 8", "'--tp', str(TP), f'--dp={TP}', f'{TP}x'", ["--tp", "8", "--dp=8", "8x"]),
    ("TP = n()", "'--tp', str(TP), f'--dp={TP}'", ["--tp", "?", "--dp=?"]),
    ("", "f'{x!r}', f'{{}}', f'a{x:>3}b'", ["?", "{}", "a?b"]),
    ("A = ['--a', '1']", "*A", ["--a", "1"]),
    ("A = ['--a']\nA += ['1']\nA.append('--b')\nA.extend(['2'])", "*A", ["--a", "1", "--b", "2"]),
    ("", "*a.split()", ["?*"]),
    ("", "*(more or [])", ["?*"]),
    ("", "*[str(x) for x in y]", ["?*"]),
    ("A = ['--a', 1]", "*[str(x) for x in A]", ["--a", "1"]),
    ("", "*'--a 1'.split()", ["--a", "1"]),
    ("", "*shlex.split(\"--a '1 2'\")", ["--a", "1 2"]),
    ("", "'a' 'b', 'c' + 'd', 'e%s' % x, 'f{}'.format(x)", ["ab", "cd", "e?", "f?"]),
    ("", r"'a\tb', r'a\tb', '\u00e9', 'a\'b'", ["a\tb", "a\\tb", "é", "a'b"]),
    ("", "json.dumps({'a': [1]})", ['{"a": [1]}']),
    ("", "os.environ.get('X', 'd'), os.getenv('Y'), os.environ['Z']", ["d", "?", "?"]),
    ("class C:\n    tp = 8", "str(C.tp)", ["8"]),
    ("A, B = '1', '2'", "A, B", ["1", "2"]),
    ("D = {'k': 'v'}", "D['k'], D['z']", ["v", "?"]),
    ("try:\n    T = '1'\nexcept E:\n    T = '1'", "T", ["1"]),
    ("é = 'ü😀'", "é, 'a'", ["ü😀", "a"]),
]


@pytest.mark.parametrize(("head", "items", "expected"), ITEMS, ids=range(len(ITEMS)))
def test_items(head: str, items: str, expected: list[str]) -> None:
    assert words(f"{head}\nsubprocess.run(['sglang', 'serve', {items}])\n") == [expected]


SINKS: list[tuple[str, list[list[str]]]] = [
    ("subprocess.Popen(['python3', '-m', 'sglang.launch_server', '--tp', '8'])", [["--tp", "8"]]),
    ("subprocess.run([sys.executable, '-m', 'sglang.launch_server', '--tp', '8'])", [["--tp", "8"]]),
    ("subprocess.check_call(('sglang', 'serve', 'm'))", [["m"]]),
    ("subprocess.run('sglang serve m --tp 8', shell=True)", [["m", "--tp", "8"]]),
    ("subprocess.run(['bash', '-c', 'sglang serve m'])", [["m"]]),
    ("subprocess.run(args=['sglang', 'serve', 'm'])", [["m"]]),
    ("os.system('sglang serve m &')", [["m"]]),
    ("os.execvp('sglang', ['sglang', 'serve', 'm'])", [["m"]]),
    ("os.execlp('sglang', 'sglang', 'serve', 'm')", [["m"]]),
    ("run_command('sglang serve m')", [["m"]]),
    ("self.host.exec_run('python -m sglang.launch_server --tp 8')", [["--tp", "8"]]),
    ("Thing(cmd=['sglang', 'serve', 'm'])", [["m"]]),
    ("def f():\n    return ['sglang', 'serve', 'm']", [["m"]]),
    ("def f(m, tp=2):\n    subprocess.run(['sglang', 'serve', m, '--tp', str(tp)])", [["?", "--tp", "2"]]),
    ("for b in ['fa3', 'triton']:\n    subprocess.run(['sglang', 'serve', b])", [["fa3"], ["triton"]]),
    ("for b in names:\n    subprocess.run(['sglang', 'serve', b])", [["?"]]),
    ("cmd = 'sglang serve m'\ncmd += ' --tp 8'\nsubprocess.run(cmd, shell=True)", [["m", "--tp", "8"]]),
    ("cmd = ['sglang', 'serve', 'm']\nsubprocess.run(' '.join(cmd), shell=True)", [["m"]]),
    ("from sglang.srt.server_args import prepare_server_args\nprepare_server_args(['--tp', '8'])", [["--tp", "8"]]),
    ("check_call(['sglang', 'serve', 'm'])", [["m"]]),
    ("find_model(['sglang', 'serve', 'm'])", []),
    ("_match_backend('python', ['python', '-m', 'sglang.launch_server', '--tp', '8'])", []),
    ("isLaunch(['sglang', 'serve', 'm'])", []),
    ("main(['launch', '--', 'sglang', 'serve', 'm'])", []),
    ("parse_launch('sglang serve m')", []),
    ("def build_cmd(m):\n    return f'sglang serve {m} --tp 8'", [["?+", "--tp", "8"]]),
    ("def build_cmd(m):\n    return ' '.join(['sglang', 'serve', 'm'])", [["m"]]),
    (
        "def cmd(m):\n    return f'sglang serve {m}'\nsubprocess.run(cmd('m') + ' --tp 8', shell=True)",
        [["m", "--tp", "8"]],
    ),
    ("def launch_example(m):\n    return f'sglang serve {m} --tp 8'", []),
    ("def text(m):\n    return f'sglang serve {m} --tp 8'", []),
    ("print('sglang serve m')", []),
    ("print(['sglang', 'serve', 'm'])", []),
    ("logging.info('sglang serve m')", []),
    ("x = 'sglang serve m'", []),
    ("x = ['sglang', 'serve', 'm']", []),
    ("raise ValueError('sglang serve m')", []),
    ("N = 32 * 1024\nsubprocess.run(['sglang', 'serve', 'm', '--tp', str(N)])", [["m", "--tp", "32768"]]),
    ("subprocess.run(['sglang', 'serve', 'm', '--tp', f'{2 * 4 - 1 + 1}'])", [["m", "--tp", "8"]]),
    ("subprocess.run(['sglang', 'serve', 'm', '--tp', str(n * 2)])", [["m", "--tp", "?"]]),
    ("subprocess.run(['sglang', 'serve', 'm', '--tp', str(1 / 0)])", [["m", "--tp", "?"]]),
    ("subprocess.run(['sglang', 'serve', 'm', '--tp', str(True * 2)])", [["m", "--tp", "?"]]),
    ("raise SystemExit('sglang serve m')", []),
    ("raise SystemExit('sglang serve {}'.format(m))", []),
    ("raise SystemExit(red('sglang serve m'))", []),
    ("def main():\n    subprocess.run(['sglang', 'serve', 'm'])\n\nraise SystemExit(main())", [["m"]]),
    ("def main():\n    subprocess.run(['sglang', 'serve', 'm'])\n\nraise SystemExit(int(main()))", [["m"]]),
    ("raise SystemExit(subprocess.run(['sglang', 'serve', 'm']).returncode)", [["m"]]),
    ("raise typer.Exit(code=subprocess.call(['sglang', 'serve', 'm']))", [["m"]]),
    ("raise RuntimeError(hint(['sglang', 'serve', 'm']))", []),
    ("parser.add_argument('--x', help='sglang serve m')", []),
    ("subprocess.run(['pkill', '-f', 'sglang serve'])", []),
    ("with self.assertRaises(X):\n    subprocess.run(['sglang', 'serve', 'm'])", []),
    ("with pytest.raises(X):\n    sgl.Engine(model_path='m')", []),
]


@pytest.mark.parametrize(("text", "expected"), SINKS, ids=range(len(SINKS)))
def test_what_starts_a_server(text: str, expected: list[list[str]]) -> None:
    assert words(text + "\n") == expected


ENGINES: list[tuple[str, list[list[str]]]] = [
    ("sgl.Engine(model_path='m', tp_size=2)", [["model_path", "'m'", "tp_size", "2"]]),
    ('import sglang\nsglang.Engine(model_path="m")', [["model_path", '"m"']]),
    ("from sglang import Engine as E\nE(model_path='m')", [["model_path", "'m'"]]),
    ("from sglang.srt.entrypoints.engine import Engine\nEngine(model_path='m')", [["model_path", "'m'"]]),
    (
        "from sglang.srt.server_args import ServerArgs\nServerArgs('m', tp_size=2)",
        [["model_path", "'m'", "tp_size", "2"]],
    ),
    ("sgl.Runtime(model_path='m', launch_timeout=3)", [["model_path", "'m'"]]),
    ("TP = 2\nsgl.Engine(tp_size=TP)", [["tp_size", "2"]]),
    ("sgl.Engine(tp_size=n)", [["tp_size", "?"]]),
    ("sgl.Engine(tp_size=1 + 1)", [["tp_size", "2"]]),
    ("sgl.Engine(cuda_graph_bs=[1, 2], model_path=f'{M}')", [["cuda_graph_bs", "[1, 2]", "model_path", "?"]]),
    ("M = 'm'\nsgl.Engine(model_path=f'{M}/x')", [["model_path", "'m/x'"]]),
    ("sgl.Engine(tp_size=2, **kw)", [["tp_size", "2", "?*"]]),
    ("kw = {'tp_size': 2}\nkw['page_size'] = 64\nsgl.Engine(**kw)", [["tp_size", "2", "page_size", "64"]]),
    ("kw = dict(tp_size=2)\nkw.update(page_size=64)\nsgl.Engine(**kw)", [["tp_size", "2", "page_size", "64"]]),
    ("sgl.Engine(**kw)", []),
    ("sgl.Engine(server_args=args)", []),
    ("from sqlalchemy import Engine\nEngine(model_path='m')", []),
    ("from vllm import ServerArgs\nServerArgs(model_path='m')", []),
    ("from sglang.multimodal_gen.runtime.server_args import ServerArgs\nServerArgs(model_path='m')", []),
]


@pytest.mark.parametrize(("text", "expected"), ENGINES, ids=range(len(ENGINES)))
def test_engines(text: str, expected: list[list[str]]) -> None:
    assert words(text + "\n") == expected


IMPORT = "from sglang.test.test_utils import ModelLaunchSettings, popen_launch_server, run_bench_one_batch\n"
HELPERS: list[tuple[str, list[list[str]]]] = [
    ("popen_launch_server('m', url, 600, other_args=['--tp', 8])", [["--model-path", "m", "--tp", "8"]]),
    ("popen_launch_server(model='m', base_url=url, timeout=600)", [["--model-path", "m"]]),
    ("popen_launch_server(M, url, timeout=600, other_args=args)", [["--model-path", "?", "?*"]]),
    ("popen_launch_server('m', url, 600, None, ('--tp', '8'))", [["--model-path", "m", "--tp", "8"]]),
    ("popen_launch_server('m', url, 600, num_replicas=2)", []),
    ("popen_launch_server('m', url, 600, pd_separated=True)", []),
    ("run_bench_one_batch('m', ['--tp', '2'])", [["--model-path", "m", "--tp", "2"]]),
    ("ModelLaunchSettings('m', tp_size=8, extra_args=['--a'])", [["--model-path", "m", "--a", "--tp", "8"]]),
    ("ModelLaunchSettings('m', 8, ['--tp=4'])", [["--model-path", "m", "--tp=4"]]),
    ("ModelLaunchSettings('m', tp_size=1)", [["--model-path", "m"]]),
]


@pytest.mark.parametrize(("call", "expected"), HELPERS, ids=range(len(HELPERS)))
def test_helpers_of_sglangs_tests(call: str, expected: list[list[str]]) -> None:
    assert words(f"{IMPORT}{call}\n") == expected


PASSED_APART = """class Backend:
    def start(self, port):
        command = ["sglang", "serve"]
        args = self.build_args(port)
        self.create(command=command, args=args)
    def build_args(self, port):
        return ["--model-path", self.model, "--port", str(port)]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A command whose arguments are passed apart is one only with a model.
        (PASSED_APART, []),
        ("def entry():\n    return ['python', '-m', 'sglang.launch_server', '--port', '1']\n", []),
        ("def entry(m):\n    return ['python', '-m', 'sglang.launch_server', '--model-path', m]\n", [["--model-path", "?"]]),
        ("subprocess.Popen(['sglang', 'serve', '--port', '1'])\n", [["--port", "1"]]),
        ("deploy(['sglang', 'serve', *extra])\n", [["?*"]]),
        # Help is printed, and nothing is served.
        ("subprocess.run('python3 -m sglang.launch_server --help | grep -q tp', shell=True)\n", []),
        ("subprocess.run(['sglang', 'serve', '--help'])\n", []),
        # What a loop or a call adds ends with a blank.
        ("c = 'sglang serve m '\nfor i in range(n):\n    c += f'{i}=x '\nc += '--tp 2'\nos.system(c)\n", [["m", "?=x", "?+", "--tp", "2"], ["m", "--tp", "2"]]),
        (
            "c = 'sglang serve m'\nfor k, v in o.items():\n    c += f' --{k} {v}'\nc += ' --tp 2'\nos.system(c)\n",
            [["m", "--?", "?+", "?+", "--tp", "2"], ["m", "--tp", "2"]],
        ),
        ("c = 'sglang serve m ' + extra() + '--tp 2'\nos.system(c)\n", [["m", "?+", "--tp", "2"]]),
    ],
)  # fmt: skip
def test_what_is_a_launch(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


def test_helpers_of_others() -> None:
    assert words("from mine import popen_launch_server\npopen_launch_server('m', url, 600)\n") == []
    assert words("def popen_launch_server(m): pass\npopen_launch_server('m')\n") == []


CLASSES = f"""{IMPORT}
class A(CustomTestCase):
    model = None
    extra = []

    @classmethod
    def setUpClass(cls):
        args = ["--tp", "2"]
        args.extend(cls.extra)
        popen_launch_server(cls.model, url, 600, other_args=args)


class B(A):
    model = "m"
    extra = ["--page-size", "64"]
"""


def test_classes_launch_what_they_inherit() -> None:
    (launch,) = read(CLASSES)
    found = {tuple(c.taken for c in v.choices): argv(v) for v in launch.variants}
    assert found == {
        ("the class is `A`",): ["--model-path", "?", "--tp", "2"],
        ("the class is `B`",): ["--model-path", "m", "--tp", "2", "--page-size", "64"],
    }


ENVIRONMENTS: list[tuple[str, dict[str, str]]] = [
    ("subprocess.run(['sglang', 'serve', 'm'], env={'A': '1'})", {"A": "1"}),
    ("subprocess.run(['sglang', 'serve', 'm'], env={**os.environ, 'A': '1'})", {"A": "1"}),
    ("os.environ['A'] = '1'\nsubprocess.run(['sglang', 'serve', 'm'])", {"A": "1"}),
    ("os.environ.update(A='1')\nsubprocess.run(['sglang', 'serve', 'm'])", {"A": "1"}),
    ("env = os.environ.copy()\nenv['A'] = '1'\nsubprocess.run(['sglang', 'serve', 'm'], env=env)", {"A": "1"}),
    ("env = os.environ.copy()\nenv['A'] = '1'\nsubprocess.run(['sglang', 'serve', 'm'])", {}),
    ("with patch.dict(os.environ, {'A': '1'}):\n    subprocess.run(['sglang', 'serve', 'm'])", {"A": "1"}),
    ("with patch.dict(os.environ, {'A': '1'}):\n    pass\nsubprocess.run(['sglang', 'serve', 'm'])", {}),
    ("subprocess.run('A=1 sglang serve m', shell=True)", {"A": "1"}),
]


@pytest.mark.parametrize(("text", "expected"), ENVIRONMENTS, ids=range(len(ENVIRONMENTS)))
def test_environment(text: str, expected: dict[str, str]) -> None:
    (launch,) = read(f"{HEAD}{text}\n")
    assert {n: told(w) for n, w in launch.variants[0].env.items()} == expected


def test_clues() -> None:
    text = (
        f"{HEAD}image = modal.Image.from_registry('lmsysorg/sglang:v0.5.9').pip_install('sglang==0.5.12', 'x')\n"
        "@app.function(gpu='H200:2')\ndef f():\n    subprocess.run(['sglang', 'serve', 'm'])\n"
    )
    (launch,) = read(text)
    assert [f"{c.kind}: {c.text}" for c in launch.clues] == [
        "gpu: H200:2",
        "pin: sglang==0.5.12",
        "image: lmsysorg/sglang:v0.5.9",
    ]


@pytest.mark.parametrize(
    ("metadata", "pins"),
    [
        ('# dependencies = ["sglang==0.5.9"]\n', ["sglang==0.5.9"]),
        ('#\n# requires-python = ">=3.11"\n# dependencies = [\n#   "httpx",\n#   "sglang[all] == 0.5.9",\n# ]\n', ["sglang[all] == 0.5.9"]),
        ('# dependencies = [\n#   # "sglang==0.5.8",\n#   "sglang>=0.5.9",\n# ]\n', ["sglang>=0.5.9"]),
        ('# dependencies = ["sglang-router==0.2.1", "my-sglang==1.0"]\n', []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_metadata_of_a_script_pins_its_release(metadata: str, pins: list[str], newline: str) -> None:
    """PEP 723: `uv run` installs what a script's first comments name."""
    block = f"#!/usr/bin/env -S uv run --script\n# /// script\n{metadata}# ///\n"
    text = f"{block}{HEAD}subprocess.run(['sglang', 'serve', 'm'])\n".replace("\n", newline)
    (launch,) = read(text)
    assert [(c.kind, c.text) for c in launch.clues] == [("pin", pin) for pin in pins]
    assert [text[c.place.start : c.place.end] for c in launch.clues] == pins


@pytest.mark.parametrize("opening", ["# /// other\n", "# // script\n", "#/// script\n", '"""\n/// script\n'])
def test_comments_that_are_no_metadata_pin_nothing(opening: str) -> None:
    closing = '"""\n' if opening.startswith('"') else ""
    text = (
        f"{opening}# dependencies = ['sglang==0.5.9']\n# ///\n{closing}{HEAD}subprocess.run(['sglang', 'serve', 'm'])\n"
    )
    (launch,) = read(text)
    assert launch.clues == ()


BROKEN: list[tuple[str, list[list[str]]]] = [
    ("sgl.Engine(model_path='m', tp_size=2, att\n", [["model_path", "'m'", "tp_size", "2"]]),
    ("sgl.Engine(model_path='m',\n    tp_size=\n", [["model_path", "'m'"]]),
    ("subprocess.run(['sglang', 'serve', 'm', '--t\n", [["m", "--t"]]),
    ("def f(:\n    pass\nsgl.Engine(model_path='m')\n", [["model_path", "'m'"]]),
    ("x = (\nsgl.Engine(model_path='m')\n", [["model_path", "'m'"]]),
    ("sgl.Engine(model_path='m')\nprint 'python 2'\n", [["model_path", "'m'"]]),
]


@pytest.mark.parametrize(("text", "expected"), BROKEN, ids=range(len(BROKEN)))
def test_half_typed_files(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


def test_places_of_keywords_and_values() -> None:
    text = f"{HEAD}B = 'fa3'\nllm = sgl.Engine(model_path='m',\n  attention_backend=B)\n"
    (launch,) = read(text)
    assert text[launch.place.start : launch.place.end] == "sgl.Engine"
    shown = [text[w.place.start : w.place.end] for w in launch.variants[0].words]
    assert shown == ["model_path", "'m'", "attention_backend", "B"]
    written = launch.variants[0].words[3].fragments[0].place
    assert text[written.start : written.end] == "'fa3'"


EDITS: list[tuple[str, str, str]] = [
    ("set", "sgl.Engine(a='m', b=1)", "sgl.Engine(a='m', b=9)"),
    ("set", "N = 1\nsgl.Engine(a='m', b=N)", "N = 9\nsgl.Engine(a='m', b=N)"),
    ("remove", "sgl.Engine(a='m', b=1)", "sgl.Engine(a='m')"),
    ("remove", "sgl.Engine(a='m', b=1, c=2)", "sgl.Engine(a='m', c=2)"),
    ("remove", "sgl.Engine(\n    a='m',\n    b=1,  # why\n    c=2,\n)", "sgl.Engine(\n    a='m',\n    c=2,\n)"),
    ("remove", "sgl.Engine(\n    a='m',\n    b=1\n)", "sgl.Engine(\n    a='m'\n)"),
    ("insert", "sgl.Engine(a='m', b=1)", "sgl.Engine(a='m', b=1, new=9)"),
    (
        "insert",
        "sgl.Engine(\n    a='m',\n    b=1,  # why\n)",
        "sgl.Engine(\n    a='m',\n    b=1,  # why\n    new=9,\n)",
    ),
    ("insert", "sgl.Engine(\n    a='m',\n    b=1\n)", "sgl.Engine(\n    a='m',\n    b=1,\n    new=9\n)"),
    ("rename", "sgl.Engine(a='m', b=1)", "sgl.Engine(a='m', other=1)"),
]


@pytest.mark.parametrize(("what", "text", "expected"), EDITS, ids=range(len(EDITS)))
def test_edits_of_keywords(what: str, text: str, expected: str) -> None:
    editor = editor_of(parse("a.py", HEAD + text + "\n"), 0)
    change = {
        "set": lambda: editor.set_value(3, "9"),
        "remove": lambda: editor.remove(2, 2),
        "insert": lambda: editor.insert(3, "new", ["9"]),
        "rename": lambda: editor.rename(2, "other"),
    }[what]()
    assert change is not None
    assert apply_edits(editor.document.text, "a.py", change.edits) == f"{HEAD}{expected}\n"


BUILT = [
    ("cmd.append('--x')\ncmd.append('1')\ncmd.append('--y')\n", "cmd.append('--y')\n"),
    ("cmd += ['--x']  # why\ncmd.extend(['1',])\ncmd.append('--y')\n", "cmd.append('--y')\n"),
    ("cmd += ['--x']\ncmd += ('1',)\ncmd.append('--y')\n", "cmd.append('--y')\n"),
    ("cmd += ['--x', '1']\ncmd.append('--y')\n", "cmd.append('--y')\n"),
    ("cmd += ['--x', '1', '--y']\n", "cmd += ['--y']\n"),
    ("cmd += ['--x']\nprint()\ncmd += ['1']\n", None),
    ("cmd.append('--x')\nprint()\ncmd.append('1')\n", None),
    ("cmd.append('--x')\ncmd += ['1', '--y']\n", None),
    ("cmd.append('--x'); print(); cmd.append('1')\n", None),
    ("if True:\n    cmd.extend(['--x', '1'])\nelse:\n    pass\n", "if True:\n    pass\nelse:\n    pass\n"),
    ("if True:\n    print()\n    cmd.append('--x')\n    cmd.append('1')\n", "if True:\n    print()\n"),
]


@pytest.mark.parametrize(("text", "expected"), BUILT, ids=range(len(BUILT)))
def test_removing_what_statements_add(text: str, expected: str | None) -> None:
    """With the statements that add nothing else; Python still takes what is left."""
    head, tail = f"{HEAD}cmd = ['sglang', 'serve', 'm']\n", "subprocess.run(cmd)\n"
    change = editor_of(parse("a.py", head + text + tail), 0).remove(1, 2)
    if expected is None:
        assert change is None
        return
    assert change is not None
    assert apply_edits(head + text + tail, "a.py", change.edits) == head + expected + tail


IF = "if {}:\n    cmd += ['{}']\n"
CMD = "cmd = ['sglang', 'serve', 'm']\n"
RUN = "subprocess.run(cmd)\n"
WAYS: list[tuple[str, list[tuple[str, str]]]] = [
    (
        CMD + IF.format("fp8", "--a") + IF.format("tp > 1", "--b") + RUN,
        [
            ("m --a --b", "`tp > 1` holds, `fp8` holds"),
            ("m --b", "`tp > 1` holds, `fp8` does not hold"),
            ("m --a", "`tp > 1` does not hold, `fp8` holds"),
            ("m", "`tp > 1` does not hold, `fp8` does not hold"),
        ],
    ),
    (
        CMD + IF.format("fp8", "--a") + IF.format("fp8", "--b") + RUN,
        [("m --a --b", "`fp8` holds"), ("m", "`fp8` does not hold")],
    ),
    (
        CMD + IF.format("fp8", "--a") + IF.format("not fp8", "--b") + RUN,
        [("m --a", "`fp8` holds"), ("m --b", "`fp8` does not hold")],
    ),
    (
        CMD + IF.format("x is None", "--a") + IF.format("x is not None", "--b") + RUN,
        [("m --a", "`x is None` holds"), ("m --b", "`x is None` does not hold")],
    ),
    (
        CMD + IF.format("b == 'x'", "--a") + IF.format("b == 'y'", "--b") + RUN,
        [
            ("m --b", "`b == 'y'` holds, `b == 'x'` does not hold"),
            ("m --a", "`b == 'y'` does not hold, `b == 'x'` holds"),
            ("m", "`b == 'y'` does not hold, `b == 'x'` does not hold"),
        ],
    ),
    (CMD + "fp8 = load()\nif not fp8:\n    sys.exit(1)\n" + IF.format("fp8", "--a") + RUN, [("m --a", "")]),
    (CMD + "if fp8:\n    cmd += ['--a']\n    " + RUN, [("m --a", "")]),
    ("T = 8\n" + CMD + IF.format("T > 4", "--a") + IF.format("T < 4", "--b") + RUN, [("m --a", "")]),
    (
        CMD + "for x in xs:\n    cmd += ['--l', x]\n" + RUN,
        [("m --l ? ?*", "the loop runs"), ("m", "the loop does not run")],
    ),
    (
        "try:\n    import a\n    B = 'a'\nexcept ImportError:\n    B = 'b'\nsubprocess.run(['sglang', 'serve', B])\n",
        [("a", "nothing fails"), ("b", "`ImportError` is raised")],
    ),
    (
        "if a != b:\n    C = '1'\nelse:\n    C = '2'\nsubprocess.run(['sglang', 'serve', C])\n",
        [("1", "`a != b` holds"), ("2", "`a != b` does not hold")],
    ),
    (
        "C = '1' if a else '2'\nsubprocess.run(['sglang', 'serve', C])\n",
        [("1", "`a` holds"), ("2", "`a` does not hold")],
    ),
    ("subprocess.run(['sglang', 'serve', m or 'd'])\n", [("?", "`m` holds"), ("d", "`m` does not hold")]),
    (
        "c = 'sglang serve m'\nif a:\n    c += ' --a'\nc += ' --b'\nsubprocess.run(c, shell=True)\n",
        [("m --a --b", "`a` holds"), ("m --b", "`a` does not hold")],
    ),
    (
        "kw = dict(model_path='m')\nif x:\n    kw['tp_size'] = 2\nsgl.Engine(**kw)\n",
        [("model_path 'm' tp_size 2", "`x` holds"), ("model_path 'm'", "`x` does not hold")],
    ),
    (
        "E = dict(os.environ)\nif a:\n    E['A'] = '1'\nsubprocess.run(['sglang', 'serve', 'm'], env=E)\n",
        [("m", "`a` holds"), ("m", "`a` does not hold")],
    ),
    ("T = os.environ.get('T', '2')\nsubprocess.run(['sglang', 'serve', 'm', '--tp', T])\n", [("m --tp 2", "")]),
    (
        "T = os.environ.get('T', '2')\n" + CMD + IF.format("T == '2'", "--a") + "cmd.append(T)\n" + RUN,
        [
            ("m --a 2", "`T` is not set"),
            ("m --a ?", "`T` is set, `T == '2'` holds"),
            ("m ?", "`T` is set, `T == '2'` does not hold"),
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), WAYS, ids=range(len(WAYS)))
def test_ways(text: str, expected: list[tuple[str, str]]) -> None:
    """Each way of the program with what is taken in it; a test that is asked again comes out the same."""
    (launch,) = read(HEAD + text)
    assert [(" ".join(argv(v)), ", ".join(c.taken for c in v.choices)) for v in launch.variants] == expected


@pytest.mark.parametrize("flags", [5, 25, 120])
@pytest.mark.parametrize(
    ("switch", "starts"),
    [
        (IF, RUN),
        ("cmd += ['{1}'] if {0} else []\n", RUN),
        ("if {0} == 'x':\n    cmd += ['{1}']\nelse:\n    cmd += ['--other']\n", RUN),
        ("if os.environ.get('{0}'):\n    cmd.append('{1}')\n", RUN),
        ("if {0} is not None:\n    text += ' {1}'\n", "os.system(text)\n"),
        ("if {0}:\n    kw['{0}'] = '{1}'\n", "sgl.Engine(**kw)\n"),
    ],
)
def test_many_ways(switch: str, starts: str, flags: int) -> None:
    """Of too many ways some are told: any two of the flags are together, and each is without each other."""
    text = HEAD + "text = 'sglang serve m'\nkw = dict(model_path='m')\n" + CMD
    text += "".join(switch.format(f"a{i}", f"--f{i}") for i in range(flags)) + starts
    (launch,) = read(text)
    assert launch.ways == "pairs"
    found = [{int(w.strip("'")[3:]) for w in argv(v) if w.strip("'").startswith("--f")} for v in launch.variants]
    for a in range(flags):
        for b in range(a):
            assert {(a in way, b in way) for way in found} == {(x, y) for x in (False, True) for y in (False, True)}


def test_a_long_way_to_a_launch() -> None:
    """Where the tests on the way ask more than is looked at, the launch is told all the same."""
    tests = "".join(f"if f{i}(a{i}) or g{i}(b{i}) or h{i}(c{i}):\n    raise ValueError\n" for i in range(80))
    (launch,) = read(f"{HEAD}{tests}{CMD}{IF.format('fp8', '--a')}{RUN}")
    assert {" ".join(argv(v)) for v in launch.variants} == {"m", "m --a"}


PARSER = "p = argparse.ArgumentParser()\n"
BUILT_BY_FUNCTIONS: list[tuple[str, list[str]]] = [
    ("def b(m, tp=2):\n    return ['sglang', 'serve', m, '--tp', str(tp)]\nrun(b('m', 8))\nrun(b('n'))\n", ["m --tp 8", "n --tp 2"]),
    ("def b(m):\n    args = ['sglang', 'serve', m]\n    return tuple(args)\nrun(b('m') + ('--a',))\n", ["m --a"]),
    ("def b(m):\n    return f'sglang serve {m}'\nrun(shlex.split(b('m')))\n", ["m"]),
    ("def b(m):\n    if m == 'm':\n        return ['sglang', 'serve', m]\n    return ['sglang', 'serve', '?!']\nrun(b('m'))\n", ["m"]),
    ("def b():\n    if x:\n        return ['--a']\n    return []\nrun(['sglang', 'serve', 'm', *b()])\n", ["m --a", "m"]),
    ("def add(c, f, v):\n    if v:\n        c.extend([f, str(v)])\n" + CMD + "add(cmd, '--a', 8)\nadd(cmd, '--b', None)\n" + RUN, ["m --a 8"]),
    ("def go(m):\n    run(['sglang', 'serve', m])\nThread(target=go, args=('m',)).start()\n", ["m"]),
    ("def go(m, *more, **kw):\n    run(['sglang', 'serve', m, *more, kw['z']])\ngo('m', '--a', z='1')\n", ["m --a 1"]),
    ("async def go(m):\n    await asyncio.create_subprocess_exec('sglang', 'serve', m)\nasyncio.run(go('m'))\n", ["m"]),
    ("def a(m):\n    b(m)\ndef b(m):\n    a(m)\n    run(['sglang', 'serve', m])\na('m')\n", ["m"]),
    ("def go():\n    def b(m):\n        return ['sglang', 'serve', m, T]\n    T = '1'\n    run(b('m'))\n", ["m 1"]),
    ("@dataclass\nclass C:\n    m: str\n    tp: int = 2\n    def cmd(self):\n        return ['sglang', 'serve', self.m, str(self.tp)]\nrun(C('m', tp=4).cmd())\n", ["m 4"]),
    ("class C:\n    def __init__(self, m):\n        self.m = m\n    def go(self):\n        run(['sglang', 'serve', self.m])\nc = C('m')\nc.go()\n", ["m"]),
    ("class C:\n    @property\n    def args(self):\n        return ['--a']\n    def go(self):\n        run(['sglang', 'serve', 'm', *self.args])\n", ["m --a"]),
    (
        "class A:\n    def args(self):\n        return ['--a']\n    def go(self):\n        run(['sglang', 'serve', 'm', *self.args()])\n"
        "class B(A):\n    def args(self):\n        return super().args() + ['--b']\n",
        ["m --a", "m --a --b"],
    ),
    (PARSER + "p.add_argument('--tp', default=8)\na = p.parse_args()\nrun(['sglang', 'serve', 'm', str(a.tp)])\n", ["m 8"]),
    (PARSER + "p.add_argument('--m')\na = p.parse_args()\nrun(['sglang', 'serve', a.m])\n", ["?"]),
    (PARSER + "p.add_argument('-t', '--tp-size', type=int, default=8)\na, b = p.parse_known_args()\nrun(['sglang', 'serve', 'm', f'{a.tp_size}', *b])\n", ["m 8 ?*"]),
    (PARSER + "p.add_argument('--x', action='store_true')\na = p.parse_args()\n" + CMD + IF.format("a.x", "--a") + RUN, ["m", "m --a"]),
    (PARSER + "p.add_argument('--x', dest='y')\na = p.parse_args()\n" + CMD + IF.format("a.y", "--a") + RUN, ["m", "m --a"]),
    (
        "d = {'tp_size': 8, 'yes': True, 'no': False}\n" + CMD + "for k, v in d.items():\n    if v is True:\n        cmd.append('--' + k)\n"
        "    elif not isinstance(v, bool):\n        cmd += [f\"--{k.replace('_', '-')}\", str(v)]\n" + RUN,
        ["m --tp-size 8 --yes"],
    ),
    ("d = {'a': 1, 'b': 2}\nrun(['sglang', 'serve', 'm', *[x for k, v in d.items() if v > 1 for x in (f'--{k}', str(v))]])\n", ["m --b 2"]),
    ("@dataclass\nclass C:\n    tp: int = field(default=4)\n    more: list = field(default_factory=lambda: ['--a'])\nc = C()\nrun(['sglang', 'serve', str(c.tp), *c.more])\n", ["4 --a"]),
    ("class C(BaseModel):\n    tp: int = Field(4, ge=1)\n    more: list = Field(default_factory=list)\nc = C()\nrun(['sglang', 'serve', str(c.tp), *c.more])\n", ["4"]),
    ("def go(tp: int = typer.Option(4, '--tp'), m: str = typer.Argument(...)):\n    run(['sglang', 'serve', m, str(tp)])\n", ["? 4"]),
    ("@click.option('--tp', default=4)\ndef go(tp):\n    run(['sglang', 'serve', 'm', str(tp)])\ngo()\n", ["m 4"]),
    (
        "@click.command()\n@click.option('--tp-size', '-t', default=4)\n@click.option('--x', 'y', is_flag=True)\ndef go(tp_size, y):\n"
        "    c = ['sglang', 'serve', 'm', str(tp_size)]\n    if y:\n        c.append('--a')\n    run(c)\n",
        ["m 4", "m 4 --a"],
    ),
    ("c = load()\nrun(['sglang', 'serve', 'm', '--tp', str(c.get('tp', 2)), '--x', c.pop('x', 'y'), c.get('z')])\n", ["m --tp 2 --x y ?"]),
    ("@dataclass\nclass Spec:\n    cmd: list\nqueue.put(Spec(['sglang', 'serve', 'm']))\n", ["m"]),
    ("def later(c):\n    queue.put(c)\nlater(['sglang', 'serve', 'm'])\n", ["m"]),
    ("run([venv() or sys.executable, '-m', 'sglang.launch_server', '--a'])\n", ["--a"]),
    # The key of a dictionary is not known: each entry, the same key for all dictionaries.
    ("P = {'a': ['--x', '1'], 'b': ['--y']}\ndef go(n):\n    run(['sglang', 'serve', 'm', *P[n]])\n", ["m --x 1", "m --y"]),
    ("M, T = {'a': 'm', 'b': 'n'}, {'a': 1, 'b': 2}\ndef go(n):\n    run(['sglang', 'serve', M[n], '--t', str(T[n])])\n", ["m --t 1", "n --t 2"]),
    ("P = {'a': {'m': 'm', 't': 1}, 'b': {'m': 'n', 't': 2}}\ndef go(n):\n    c = P[n]\n    run(['sglang', 'serve', c['m'], str(c['t'])])\n", ["m 1", "n 2"]),
    ("def go(n):\n    e = {'a': '--x 1', 'b': '--y'}.get(n, '')\n    run(f'sglang serve m {e}', shell=True)\n", ["m --x 1", "m --y", "m"]),
    ("P = {'a': '--x', 'b': '--y'}\ndef go(n):\n    c = ['sglang', 'serve', 'm', P.get(n, '--z')]\n    if n == 'a':\n        c.append('--w')\n    run(c)\n",
     ["m --x --w", "m --y", "m --z"]),
    ("p = argparse.ArgumentParser()\np.add_argument('--n', default='a')\na = p.parse_args()\nrun(['sglang', 'serve', 'm', {'a': '--x', 'b': '--y'}[a.n]])\n",
     ["m --x", "m --y"]),
    ("P = {'a': dict(tp_size=1), 'b': dict(dp_size=2)}\ndef go(n):\n    sgl.Engine(model_path='m', **P[n])\n", ["model_path 'm' tp_size 1", "model_path 'm' dp_size 2"]),
    ("P = load()\nP['a'] = '--x'\nrun(['sglang', 'serve', 'm', P[name()]])\n", ["m ?"]),
    (
        "kw = {'model_path': 'm'}\nif 'x' in inspect.signature(sgl.ServerArgs).parameters:\n    kw['x'] = 1\nsgl.Engine(**kw)\n",
        ["model_path 'm' ?*", "model_path 'm'"],
    ),
    (
        "kw = {'model_path': 'm'}\nif 'x' in [f.name for f in dataclasses.fields(ServerArgs)]:\n    kw['x'] = 1\nsgl.Engine(**kw)\n",
        ["model_path 'm' ?*", "model_path 'm'"],
    ),
    ("kw = {'model_path': 'm'}\nif 'x' in settings:\n    kw['x'] = 1\nsgl.Engine(**kw)\n", ["model_path 'm' x 1", "model_path 'm'"]),
    ("def f(**kw):\n    sgl.Engine(model_path='m', **kw)\nf(tp_size=2)\n", ["model_path 'm' tp_size 2"]),
    (CMD + "cmd.insert(1, 'x')\ncmd.insert(3, '--a')\nrun(['sglang', 'serve', *cmd[3:3], 'm'])\n", ["?* m"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BUILT_BY_FUNCTIONS, ids=range(len(BUILT_BY_FUNCTIONS)))
def test_what_functions_and_options_bring(text: str, expected: list[str]) -> None:
    head = "import argparse, asyncio, dataclasses, inspect\nfrom subprocess import run\nfrom dataclasses import dataclass, field\nimport typer\n"
    assert [" ".join(found) for found in words(head + text)] == expected


TESTS = ("a", "b", "not a", "a and b", "a or not b", "k == 'x'", "k == 'y'", "k != 'x'", "n > 1", "n <= 1")
STEPS = (
    "cmd += ['{i}']", "cmd.append('{i}')", "cmd.extend(('{i}', '{i}'))", "cmd = [*cmd, '{i}']", "cmd = cmd + ['{i}']", "v = '{i}'",
    "cmd.append(v)", "cmd.append(f'{{v}}{i}')", "cmd.append('{i}' if {t} else v)", "cmd += ['{i}'] if {t} else []", "add(cmd, '{i}', {t})",
    "cmd += more(v)", "cmd.insert(2, '{i}')", "cmd += [x + v for x in ('{i}', '{i}') if {t}]", "v = 'w{i}'.replace('w', v)",
)  # fmt: skip
PROGRAM = """import sys
from subprocess import run
def add(c, x, yes):
    if yes:
        c += [x]
def more(x):
    if x == '0':
        return ['zero']
    return (x, 'more')
cmd = ['sglang', 'serve']
v = '0'
"""


def steps(depth: int) -> st.SearchStrategy[str]:
    """A few statements that build a command, some under tests."""
    step = st.builds(
        lambda s, i, t: s.format(i=i, t=t), st.sampled_from(STEPS), st.integers(0, 3), st.sampled_from(TESTS)
    )
    if not depth:
        return step
    body = st.lists(steps(depth - 1), min_size=1, max_size=2).map("\n".join)
    return st.one_of(
        step,
        st.builds(lambda t, x: f"if {t}:\n{indent(x, '    ')}", st.sampled_from(TESTS), body),
        st.builds(
            lambda t, x, y: f"if {t}:\n{indent(x, '    ')}\nelse:\n{indent(y, '    ')}",
            st.sampled_from(TESTS),
            body,
            body,
        ),
    )


@given(st.lists(steps(2), min_size=1, max_size=5).map("\n".join))
@draws(200)
def test_ways_are_those_that_python_takes(body: str) -> None:
    """Whatever is asked of names that nobody knows: each way that Python can take is told, and no other."""
    text = f"{PROGRAM}{body}\nrun(cmd)\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "MAX_WAYS", 1_000)
        (launch,) = read(text)
    told_ways = {tuple(argv(v)) for v in launch.variants}
    taken: set[tuple[str, ...]] = set()
    for a, b, k, n in product((True, False), (True, False), ("x", "y", "z"), (1, 2)):
        ran: list[list[str]] = []
        exec(text.replace("from subprocess import run", ""), {"a": a, "b": b, "k": k, "n": n, "run": ran.append})
        taken.add(tuple(ran[0][2:]))
    assert told_ways >= taken
    assert {way for way in told_ways if "?" not in "".join(way)} <= taken


strings = st.text(st.sampled_from("ab é😀'\"\\\n\t{}%$"), max_size=8)


@given(
    st.lists(strings, min_size=1, max_size=4), st.sampled_from(["{!r}", "f{!r}", "'' {!r}", "str({!r})", "({!r} + '')"])
)
@draws(150)
def test_strings_are_what_python_makes_of_them(texts: list[str], form: str) -> None:
    if "f" in form:
        texts = [t.replace("{", "").replace("}", "").replace("\\", "") for t in texts]
    items = ", ".join(form.format(t) for t in texts)
    (launch,) = read(f"{HEAD}subprocess.run(['sglang', 'serve', {items}])\n")
    assert [w.text for w in launch.variants[0].words] == texts


def test_a_file_that_starts_nothing_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ast.parse", lambda *_: pytest.fail("parsed"))
    assert parse("a.py", "import sglang\nsglang.function(x)\n" * 100).launches == ()


EXPRESSIONS = (
    "1 + 2", "-1", "None", "True", "...", "1j", "b'x'", "''", "f''", "f'{x}'", "x or 1", "not x", "len(x)", "str()", "''.join([])",
    "int('3')", "x if y else z", "lambda: 1", "[*x]", "{}", "{*x}", "(yield)", "x[0]", "x.y", "x == y", "-x", "+0", "~0", "str(1)",
    "f'{1}'", "repr('a')", "'a' 'b'", "'%s' % 1", "'{}'.format(1)", "os.environ['X']", "os.getenv('X', 1)", "x := 1", "(1,)[0]", "[1][0]",
)  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_argument_may_be_any_expression(expression: str) -> None:
    """One argument at least is read of it, whatever it is."""
    text = f"import os\ndef f(x, y, z):\n    run(['sglang', 'serve', 'm', '--tp', ({expression})])\n"
    document = parse("a.py", text)
    check_maps(document)
    (launch,) = document.launches
    assert [w.text for w in launch.variants[0].words[:2]] == ["m", "--tp"]
    assert len(launch.variants[0].words) == 3
