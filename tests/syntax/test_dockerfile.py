"""Dockerfiles: stages, forms of commands, variables, here-documents."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from spec_lsp.syntax.dockerfile import instructions
from spec_lsp.syntax.edit import apply_edits
from spec_lsp.syntax.launch import Launch
from tests.syntax.support import argv, check_maps, told

BASE = "FROM lmsysorg/sglang:v0.5.9\n"
START = '"python3", "-m", "sglang.launch_server"'


def read(text: str) -> list[Launch]:
    document = parse("Dockerfile", text)
    check_maps(document)
    return list(document.launches)


def words(text: str) -> list[list[str]]:
    return [argv(launch.variants[0]) for launch in read(text)]


COMMANDS: list[tuple[str, list[list[str]]]] = [
    (f'CMD [{START}, "--tp", "8"]', [["--tp", "8"]]),
    ("CMD sglang serve m --tp 8", [["m", "--tp", "8"]]),
    (f'ENTRYPOINT [{START}]\nCMD ["--tp", "8"]', [["--tp", "8"]]),
    (f'CMD ["--tp", "8"]\nENTRYPOINT [{START}]', [["--tp", "8"]]),
    (f"ENTRYPOINT [{START}]", [["?*"]]),
    (f"ENTRYPOINT [{START}]\nCMD []", [["?*"]]),
    ("ENTRYPOINT sglang serve m\nCMD [\"--tp\", \"8\"]", [["m"]]),
    ('CMD ["redis"]\nCMD ["sglang", "serve", "m"]', [["m"]]),
    ('CMD ["sglang", "serve", "m"]\nCMD ["redis"]', []),
    ('CMD ["sh", "-c", "sglang serve m --tp $TP"]', [["m", "--tp", "?+"]]),
    ('ENTRYPOINT ["tini", "--"]\nCMD ["sglang", "serve", "m"]', [["m"]]),
    ("cmd sglang serve m", [["m"]]),
    ("CMD sglang serve m \\\n  # why\n\n  --tp 8", [["m", "--tp", "8"]]),
    ("CMD sglang serve m \\  \n  --tp 8", [["m", "--tp", "8"]]),
    (r'CMD ["sglang", "serve", "a\"b\\c\u0041\/"]', [['a"b\\cA/']]),
    ("CMD ['sglang', 'serve', 'm']", []),
    ('CMD ["sglang", "serve", "m",]', []),
    ('CMD ["sglang", "serve", "$MODEL"]', [["$MODEL"]]),
    ("HEALTHCHECK CMD sglang serve m", []),
    ("LABEL run=\"sglang serve m\"", []),
    ("# CMD sglang serve m", []),
    ("RUN --mount=type=cache,target=/x python3 -m sglang.compile_deep_gemm --model m", [["--model", "m"]]),
    ("ONBUILD CMD [\"sglang\", \"serve\", \"m\"]", [["m"]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), COMMANDS, ids=range(len(COMMANDS)))
def test_commands(text: str, expected: list[list[str]]) -> None:
    assert words(BASE + text + "\n") == expected


VARIABLES: list[tuple[str, str]] = [
    ("ENV TP=8", "8"),
    ("ENV TP 8", "8"),
    ('ENV A=1 TP="8" B=2', "8"),
    ("ENV A=1 \\\n    # why\n    TP=8", "8"),
    ("ARG N=8\nENV TP=$N", "8"),
    ("ARG N=8\nENV TP=${N}", "8"),
    ("ARG N\nENV TP=$N", "?+"),
    ("ENV TP=${N:-8}", "8"),
    ("ARG N\nENV TP=${N:-8}", "8"),
    ("ENV N=8 TP=4\nENV TP=$N", "8"),
    ("ENV TP='$N'", "$N"),
    ("ENV TP=\\$N", "$N"),
    ("ENV TP=$N", "?+"),
    ("ARG TP=8", "?+"),
]


@pytest.mark.parametrize(("lines", "expected"), VARIABLES)
def test_variables_of_a_shell_command(lines: str, expected: str) -> None:
    assert words(f"{BASE}{lines}\nCMD sglang serve m --tp $TP\n") == [["m", "--tp", expected]]


def test_build_arguments_are_known_while_building_only() -> None:
    text = f"{BASE}ARG TP=8\nRUN python -m sglang.bench_one_batch --tp $TP\nCMD sglang serve m --tp $TP\n"
    assert words(text) == [["--tp", "8"], ["m", "--tp", "?+"]]


IMAGES = [
    ("FROM lmsysorg/sglang:v0.5.9\n", ["image: lmsysorg/sglang:v0.5.9"]),
    ("FROM --platform=linux/amd64 lmsysorg/sglang:v0.5.9 AS x\n", ["image: lmsysorg/sglang:v0.5.9"]),
    ("ARG TAG=v0.5.9\nFROM lmsysorg/sglang:${TAG}-cu129\n", ["image: lmsysorg/sglang:v0.5.9-cu129"]),
    ("ARG TAG\nFROM lmsysorg/sglang:$TAG\n", []),
    ("FROM lmsysorg/sglang:v0.5.9 AS a\nFROM a AS b\nFROM B\n", ["image: lmsysorg/sglang:v0.5.9"]),
    ("FROM cuda\nRUN pip install 'sglang[all]==0.5.9'\n", ["pin: sglang[all]==0.5.9"]),
    ("ARG V=0.5.9\nFROM cuda\nARG V\nRUN pip install sglang==${V}\n", ["pin: sglang==0.5.9"]),
    ("FROM lmsysorg/sglang:v0.5.9\nRUN pip install sglang==0.5.12\n", ["pin: sglang==0.5.12"]),
]


@pytest.mark.parametrize(("lines", "expected"), IMAGES, ids=range(len(IMAGES)))
def test_what_tells_the_release(lines: str, expected: list[str]) -> None:
    (launch,) = read(lines + "CMD sglang serve m\n")
    assert [f"{c.kind}: {c.text}" for c in launch.clues] == expected


STAGES: list[tuple[str, list[list[str]]]] = [
    ('FROM a AS x\nCMD ["sglang", "serve", "m"]\nFROM x\n', [["m"]]),
    ('FROM a AS x\nCMD ["sglang", "serve", "m"]\nFROM x\nCMD ["redis"]\n', [["m"]]),
    ('FROM a AS x\nENTRYPOINT ["sglang", "serve"]\nCMD ["m"]\nFROM x\nCMD ["n"]\n', [["m"], ["n"]]),
    ('FROM a AS x\nCMD ["m"]\nFROM x\nENTRYPOINT ["sglang", "serve"]\n', [["?*"]]),
    ("FROM a AS x\nENV M=m\nFROM x\nCMD sglang serve $M\n", [["m"]]),
    ("FROM a AS x\nENV M=m\nFROM b\nCMD sglang serve $M\n", [["?+"]]),
]


@pytest.mark.parametrize(("text", "expected"), STAGES, ids=range(len(STAGES)))
def test_stages(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


FILES: list[tuple[str, list[list[str]]]] = [
    ("COPY <<EOF /e.sh\nexec sglang serve m \"\\$@\"\nEOF\nENTRYPOINT [\"/e.sh\"]\nCMD [\"--tp\", \"8\"]", [["m", "--tp", "8"]]),
    ("COPY <<'EOF' /e.sh\nexec sglang serve m \"$@\"\nEOF\nENTRYPOINT [\"bash\", \"/e.sh\", \"--tp\", \"8\"]", [["m", "--tp", "8", "?*"]]),
    ("ENV M=m\nCOPY <<-EOF /e.sh\n\tsglang serve $M\n\tEOF\nCMD [\"/e.sh\"]", [["m"]]),
    # Debian's /bin/sh carries out escapes, bash does when it is asked to.
    ("RUN echo '#!/bin/bash\\nsglang serve m --tp 8' > /e.sh\nCMD [\"/e.sh\"]", [["m", "--tp", "8"]]),
    ("RUN echo '#!/bin/bash\\n\\\nsglang serve m' > /e.sh\nCMD [\"/e.sh\"]", [["m"]]),
    ('SHELL ["/bin/bash", "-c"]\nRUN echo "#!/bin/bash\\nsglang serve m" > /e.sh\nCMD ["/e.sh"]', []),
    ('SHELL ["/bin/bash", "-c"]\nRUN echo -e "#!/bin/bash\\nsglang serve m" > /e.sh\nCMD ["/e.sh"]', [["m"]]),
    # A file may be started by less than its path.
    ("WORKDIR /app\nCOPY <<EOF start.sh\nsglang serve m\nEOF\nCMD [\"bash\", \"/app/start.sh\"]", [["m"]]),
    ("RUN cat > /app/start.sh <<EOF\nsglang serve m\nEOF\nWORKDIR /app\nCMD [\"./start.sh\"]", [["m"]]),
    ("ENV D=/app\nWORKDIR $D/x\nRUN cat > start.sh <<EOF\nsglang serve m\nEOF\nWORKDIR ..\nCMD [\"bash\", \"x/start.sh\"]", [["m"]]),
    ("COPY <<EOF /usr/local/bin/serve\nsglang serve m\nEOF\nENTRYPOINT [\"serve\"]", [["m", ]]),
    ("COPY <<EOF /opt/serve\nsglang serve m\nEOF\nENTRYPOINT [\"serve\"]\nWORKDIR /srv", []),
    ("RUN <<EOF\npython -m sglang.bench_one_batch --tp 2\nEOF", [["--tp", "2"]]),
    ("RUN bash <<EOF\npython -m sglang.bench_one_batch --tp 2\nEOF", [["--tp", "2"]]),
    ("RUN echo 'sglang serve m --tp 2' > /e.sh\nCMD [\"/e.sh\"]", [["m", "--tp", "2"]]),
    ("RUN printf '%s\\n' 'sglang serve m' > /e.sh && chmod +x /e.sh\nENTRYPOINT [\"/e.sh\"]\nCMD [\"x\"]", [["m"]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FILES, ids=range(len(FILES)))
def test_files_that_are_written_and_run(text: str, expected: list[list[str]]) -> None:
    assert words(f"{BASE}{text}\n") == expected


def test_config_file_that_a_here_document_writes() -> None:
    text = f'{BASE}COPY <<EOF /etc/c.yaml\ntp-size: 8\nEOF\nCMD ["sglang", "serve", "--config", "/etc/c.yaml"]\n'
    (launch,) = read(text)
    (file,) = launch.variants[0].files
    assert (file.name, file.content.text) == ("/etc/c.yaml", "tp-size: 8\n")
    assert text[file.content.place.start : file.content.place.end] == "tp-size: 8\n"


def test_environment_and_places() -> None:
    text = f'{BASE}ENV SGLANG_X="a b"\nCMD [{START}, "--tp", "8"]\n'
    (launch,) = read(text)
    (variant,) = launch.variants
    assert {name: told(word) for name, word in variant.env.items()} == {"SGLANG_X": "a b"}
    assert launch.syntax == "list-words"
    assert text[launch.place.start : launch.place.end] == START
    assert [text[w.place.start : w.place.end] for w in variant.words] == ['"--tp"', '"8"']
    assert [text[f.place.start : f.place.end] for w in variant.words for f in w.fragments] == ["--tp", "8"]


def test_other_escape_character() -> None:
    assert words("# escape=`\nFROM a\nCMD sglang serve m `\n  --tp 8 c:\\\n") == [["m", "--tp", "8", "c:\\"]]


def test_instructions() -> None:
    text = "FROM a\nRUN cat <<A <<'B'\n1\nA\n2\nB\nEXPOSE 1 \\\n 2\n"
    found = list(instructions("Dockerfile", text))
    assert [(i.name, i.body.text) for i in found] == [("FROM", "a"), ("RUN", "cat <<A <<'B'"), ("EXPOSE", "1  2")]
    assert [(d.text, expands) for d, expands in found[1].documents] == [("1\n", True), ("2\n", False)]


LISTS: list[tuple[str, str, str]] = [
    ('CMD ["sglang", "serve", "m", "--port", 3000]', "3000", 'CMD ["sglang", "serve", "m", "--port", "3000"]'),
    ("CMD ['sglang', 'serve', 'm']", "'sglang'", 'CMD ["sglang", "serve", "m"]'),
    ('CMD ["sglang", "serve", "m",]', ",", 'CMD ["sglang", "serve", "m"]'),
    ('CMD ["sglang", "serve" "m"]', '"m"', 'CMD ["sglang", "serve", "m"]'),
    ('ENTRYPOINT ["sglang", serve]\nCMD ["m"]', "serve", 'ENTRYPOINT ["sglang", "serve"]\nCMD ["m"]'),
    ('ENTRYPOINT ["sglang", "serve"]\nCMD ["--x", 1]  # sglang', "1", ""),
    ('CMD ["sglang", \\\n  "serve", \\\n  m]', "m", 'CMD ["sglang", \\\n  "serve", \\\n  "m"]'),
]


@pytest.mark.parametrize(("text", "at", "fixed"), LISTS, ids=range(len(LISTS)))
def test_lists_that_are_no_json_are_for_a_shell(text: str, at: str, fixed: str) -> None:
    text = f"FROM x\n{text}\n"
    problems = parse("Dockerfile", text).problems
    assert [(p.rule, text[p.place.start : p.place.end]) for p in problems] == (
        [("list-for-a-shell", at)] if fixed else []
    )
    if fixed:
        assert apply_edits(text, "Dockerfile", problems[0].edits) == f"FROM x\n{fixed}\n"
        assert parse("Dockerfile", f"FROM x\n{fixed}\n").launches


@pytest.mark.parametrize(
    "line",
    [
        'CMD ["sglang", "serve", "m"]',
        "CMD [ -n sglang ] && sglang serve m",
        'CMD ["sglang", "serve',
        'CMD ["redis", 1]',
        "CMD sglang serve [a,b]",
    ],
)
def test_commands_that_are_meant_for_a_shell(line: str) -> None:
    assert parse("Dockerfile", f"FROM x\n{line}\n# sglang\n").problems == ()


@pytest.mark.parametrize("runs", ['ENTRYPOINT ["/run.sh"]', 'CMD ["bash", "/run.sh"]', "CMD /run.sh"])
@pytest.mark.parametrize(
    "writes",
    [
        "RUN cat > /run.sh << 'EOF'\n{}EOF\nRUN chmod +x /run.sh\n",
        "RUN cat <<'EOF' >/run.sh && chmod +x /run.sh\n{}EOF\n",
        "RUN <<OUTER\ncat > /run.sh <<'EOF'\n{}EOF\nOUTER\n",
        "COPY <<'EOF' /run.sh\n{}EOF\n",
    ],
)
def test_scripts_that_the_build_writes(writes: str, runs: str) -> None:
    script = "#!/bin/bash\nexec sglang serve m --tp 2\n"
    document = parse("Dockerfile", f"FROM lmsysorg/sglang:v0.5.9\n{writes.format(script)}{runs}\n")
    check_maps(document)
    (launch,) = document.launches
    assert argv(launch.variants[0]) == ["m", "--tp", "2"]
    assert [c.text for c in launch.clues] == ["lmsysorg/sglang:v0.5.9"]
