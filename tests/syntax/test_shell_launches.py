"""Scripts and the launches in them. `?` is an unknown value, `?+` an unquoted unknown variable, `?*` any number of words."""

from __future__ import annotations

import pytest

from spec_lsp.syntax import parse
from tests.syntax.support import START, argv, check_maps, launches, told

P = START

ONE: list[tuple[str, list[str]]] = [
    # Entry points.
    (f"{P} --tp 8", ["--tp", "8"]),
    ("python3 -m sglang.launch_server --tp=8", ["--tp=8"]),
    ("python3.11 -u -X dev -m sglang.launch_server --tp 8", ["--tp", "8"]),
    ("/opt/venv/bin/python -m sglang.launch_server a", ["a"]),
    ('"$VENV/bin/python" -m sglang.launch_server a', ["a"]),
    ("${PY:-python3} -m sglang.launch_server a", ["a"]),
    ("$PY -m sglang.launch_server a", ["a"]),
    ("uv run --with x python -m sglang.launch_server a", ["a"]),
    ("uvx --from sglang==0.5.9 sglang serve m --tp 2", ["m", "--tp", "2"]),
    ("uv run --with x -m sglang.launch_server --tp 2", ["--tp", "2"]),
    ("sg render -c '$V/bin/python -m sglang.launch_server a'", ["a"]),
    ('tmux new-session -d -s x "\nexport A=1\n$V/sglang/bin/python -m sglang.launch_server a\n"', ["a"]),
    ("sglang serve m", ["m"]),
    (f'{P} "${{X:-}}" a "${{Y+}}${{Z-}}"', ["", "a", ""]),
    (f'if [ -n "${{X:-}}" ]; then exit 1; fi\n{P} a', ["a"]),
    (f'if [ "${{X:-}}" ]; then exec bash; fi\n{P} a', ["a"]),
    (f'A=()\n{P} "${{A[@]+"${{A[@]}}"}}" a', ["a"]),
    (f'. "$D/args.sh"\nA=()\nread_args flags.txt A\n{P} a "${{A[@]}}"', ["a", "?*"]),
    (f'. "$D/args.sh"\nA=()\nread_args sglang_args.sh A\n{P} a "${{A[@]}}"', ["a", "?*"]),
    # A script that may be run or sourced.
    (f'if [[ "${{BASH_SOURCE[0]}}" == "${{0}}" ]]; then\n  exit 1\nfi\nf() {{ {P} a; }}', ["a"]),
    (f'[[ $0 != "$BASH_SOURCE" ]] || {{ echo no; exit; }}\n{P} a', ["a"]),
    (f'main() {{ {P} "$@"; }}\n[ "$0" = "$BASH_SOURCE" ] && main a', ["a"]),
    ("python -m sglang.bench_one_batch --model m", ["--model", "m"]),
    ("python -m dynamo.sglang --tp 2", ["--tp", "2"]),
    ("python -m sglang_router.launch_server --tp 2", ["--tp", "2"]),
    ("python /src/python/sglang/launch_server.py --tp 2", ["--tp", "2"]),
    ("torchrun --nproc_per_node 1 -m sglang.launch_server --tp 2", ["--tp", "2"]),
    (f"bash -x prepare.sh {P} --tp 2", ["--tp", "2"]),
    # Where the argv ends.
    (f"{P} a > log 2>&1 &", ["a"]),
    (f"{P} a 2>&1 | tee log", ["a"]),
    (f"{P} a && echo done", ["a"]),
    (f"{P} a; echo done", ["a"]),
    (f"({P} a)", ["a"]),
    (f"{P} a # why", ["a"]),
    (f"{P} a#b c", ["a#b", "c"]),
    (f"{P} \\ '#' \\ \"#\" \\ \\# a", [" #", " #", " #", "a"]),
    (f"{P} a &> log", ["a"]),
    (f"{P} a > >(tee log) 2>&1", ["a"]),
    # Quotes.
    (f"{P} 'a b' \"c d\" e\\ f", ["a b", "c d", "e f"]),
    (f"{P} $'a\\tb\\x41\\u00e9' ''", ["a\tbAé", ""]),
    (f"{P} --j '{{\"a\": 1}}'", ["--j", '{"a": 1}']),
    (f'{P} --j "{{\\"a\\": 1}}"', ["--j", '{"a": 1}']),
    (f"{P} a'b'\"c\"d", ["abcd"]),
    (f'{P} "\\$X \\` \\\\ \\n"', ["$X ` \\ \\n"]),
    (f"{P} a \\\n  b \\\n  c", ["a", "b", "c"]),
    (f"{P} a \\\r\n  b\r\n", ["a", "b"]),
    (f"{P} --x{{1,2}}", ["--x1", "--x2"]),
    # Variables.
    (f'T=4\n{P} --tp $T "$T" ${{T}}x', ["--tp", "4", "4", "4x"]),
    (f"{P} ${{T:-4}} ${{U:=5}} $U ${{V-6}}", ["4", "5", "5", "6"]),
    (f'{P} --tp $T --x "$T" --y=$T $T', ["--tp", "?+", "--x", "?", "--y=?", "?+"]),
    (f"F='--a 1  --b'\n{P} $F \"$F\"", ["--a", "1", "--b", "--a 1  --b"]),
    (f'F="--a 1"\nF="$F --b 2"\nF+=" --c"\n{P} $F', ["--a", "1", "--b", "2", "--c"]),
    (f"N=3\n{P} $((N * 2 + 1)) $((X + 1))", ["7", "?+"]),
    (f"M=org/name\n{P} ${{M##*/}} ${{M%/*}} ${{M/org/x}} ${{M^^}} ${{#M}} ${{M:4:2}}", ["name", "org", "x/name", "ORG/NAME", "8", "na"]),
    (f"X=5 Y=$X\n{P} $Y", ["5"]),
    (f"V=X\nX=1\n{P} ${{!V}}", ["1"]),
    (f'{P} ${{a.b}} "${{c.d:${{e.f}}}}" ${{project.x}}y', ["?+", "?", "?y"]),
    (f"X=\n{P} $X a \"$X\"", ["a", ""]),
    # Arrays.
    (f'A=(--a 1 "b c")\nA+=(--d)\n{P} "${{A[@]}}"', ["--a", "1", "b c", "--d"]),
    (f"A=(\n  # why\n  --a 1 # c\n\n  --b\n)\n{P} ${{A[@]}}", ["--a", "1", "--b"]),
    (f'A=(a b)\n{P} "${{A[*]}}" ${{A[1]}} ${{#A[@]}} $A', ["a b", "b", "2", "a"]),
    (f'A=(a)\n{P} ${{A[@]+"${{A[@]}}"}}', ["a"]),
    (f'A=()\n{P} "${{A[@]}}" b', ["b"]),
    (f'declare -A M=([x]="--a 1" [y]=--b)\nK=x\n{P} ${{M[$K]}}', ["--a", "1"]),
    (f'A=(a)\nA[${{#A[@]}}]=b\nA[${{#A[*]}}]="c d"\n{P} "${{A[@]}}"', ["a", "b", "c d"]),
    (f'A=(a)\nA[$N]=b\n{P} "${{A[@]}}"', ["?*"]),
    (f'read -ra A <<< "$X"\n{P} "${{A[@]}}"', ["?*"]),
    (f'IFS=, read -r -a A < list\n{P} x "${{A[@]}}"', ["x", "?*"]),
    (f'{P} "$@"', ["?*"]),
    (f'{P} "${{A[@]}}"', ["?*"]),
    # Commands kept for later.
    (f'C=({P})\nC+=(--tp "$TP")\nexec "${{C[@]}}"', ["--tp", "?"]),
    (f'C="{P} --tp $TP"\n$C', ["--tp", "?+"]),
    (f'C="{P} --tp 8"\neval "$C"', ["--tp", "8"]),
    (f'C="{P} --m \'a b\'"\neval "$C"', ["--m", "a b"]),
    (f'C="{P} --tp 8"\nbash -c "$C --dp 2"', ["--tp", "8", "--dp", "2"]),
    (f'C=$(cat <<EOF\n{P} --tp 8\nEOF\n)\neval "$C"', ["--tp", "8"]),
    (f"read -r -d '' C <<'EOF'\n{P} --tp 8 \\\n  --dp 2\nEOF\neval \"$C\"", ["--tp", "8", "--dp", "2"]),
    # Wrappers.
    (f"FOO=1 nohup {P} a &", ["a"]),
    (f"env A=1 B=2 {P} a", ["a"]),
    (f"exec numactl --cpunodebind=0 --membind=0 {P} a", ["a"]),
    (f"timeout -k 5 100 nice -n 5 setsid {P} a", ["a"]),
    (f"srun -N 2 --gres=gpu:8 --container-image=img {P} a", ["a"]),
    (f"nsys profile -o x {P} a", ["a"]),
    (f"time {P} a", ["a"]),
    (f"sudo -E {P} a", ["a"]),
    (f"CUDA_VISIBLE_DEVICES=0 command {P} a", ["a"]),
    (f"docker run --rm -it --gpus all -v /a:/b --name x lmsysorg/sglang:v0.5.9 {P} a", ["a"]),
    (f"docker run -d img bash -c '{P} a'", ["a"]),
    (f"docker exec -it c {P} a", ["a"]),
    (f"podman run --rm img {P} a", ["a"]),
    (f"apptainer exec --nv img.sif {P} a", ["a"]),
    (f"bash -lc '{P} \"a b\"'", ["a b"]),
    (f"ssh -p 22 host 'cd /x && {P} a'", ["a"]),
    (f"ssh host {P} a", ["a"]),
    (f"ssh host bash -s <<EOF\n{P} a\nEOF", ["a"]),
    (f"ssh host <<'EOF'\n{P} $X\nEOF", ["?+"]),
    (f"cat <<EOF | bash\n{P} a\nEOF", ["a"]),
    (f"kubectl exec -it pod -c x -- {P} a", ["a"]),
    (f"kubectl exec pod -- bash -c '{P} a'", ["a"]),
    (f"ray job submit --address x -- {P} a", ["a"]),
    (f"tmux send-keys -t s:0 '{P} a' Enter", ["a"]),
    (f"tmux new-session -d -s x '{P} a'", ["a"]),
    (f"sbatch --wrap=\"{P} a\"", ["a"]),
    (f"$PREFIX {P} a", ["a"]),
    (f"cd /x && source venv/bin/activate && {P} a", ["a"]),
    (f"docker compose run --rm -e A=1 server {P} a", ["a"]),
    (f"docker-compose -f a.yml exec -T server bash -c '{P} a'", ["a"]),
    (f'O=(--rm --gpus all -e Y=2)\ndocker run "${{O[@]}}" $IMAGE {P} a', ["a"]),
    (f'docker run "${{O[@]}}" image {P} a', ["a"]),
    ("docker run --entrypoint python3 img -m sglang.launch_server a", ["a"]),
    (f"docker run --rm img bash -c \"{P} --j '{{\\\"a\\\": 1}}' --m \\\"x y\\\" \\\n  --tp 4\"", ["--j", '{"a": 1}', "--m", "x y", "--tp", "4"]),
    (f"tmux send-keys -t s 'cd /x' Enter '{P} a' C-m", ["a"]),
    (f"tmux new -d -s x '{P} a 2>&1 | tee log'", ["a"]),
    (f"tmux split-window -h '{P} a; bash'", ["a"]),
    (f"screen -dmS x bash -c '{P} a; exec bash'", ["a"]),
    (f"screen -L -dmS x {P} a", ["a"]),
    (f"pm2 start '{P} a' --name x", ["a"]),
    ("pm2 start python3 --name x -- -m sglang.launch_server a", ["a"]),
    (f"pm2 start {P} a", ["a"]),
    (f"screen -S x -X stuff '{P} a\\n'", ["a"]),
    (f"screen -S x -p 0 -X stuff \"{P} a$(printf '\\r')\"", ["a"]),
    (f"cat list | xargs -I{{}} {P} --m {{}} --n=x{{}}y", ["--m", "?", "--n=x?y"]),
    (f"cat list | xargs -n 1 -P 2 {P} --m a", ["--m", "a", "?*"]),
    (f"xargs -n1 sh -c '{P} --m \"$0\"' < list", ["--m", "?"]),
    (f"parallel -j 2 '{P} --port 3{{}}' ::: 1 2", ["--port", "3?"]),
    (f"parallel --link {P} --m {{1}} --port {{2}} ::: a b ::: 1 2", ["--m", "?+", "--port", "?+"]),
    (f"mpirun -np 2 -H a,b -x PATH -x A=1 {P} a", ["a"]),
    (f"mpirun -np 2 bash -c '{P} --node-rank $OMPI_COMM_WORLD_RANK'", ["--node-rank", "?+"]),
    (f"enroot start --rw --env A=1 image {P} a", ["a"]),
    (f"su - user -c 'cd /x && {P} a'", ["a"]),
    (f"su -s /bin/bash -c '{P} a' user", ["a"]),
    (f"sudo -u x -H A=1 bash -lc '{P} a'", ["a"]),
    (f"ssh host bash -s -- 8 <<'EOF'\n{P} --tp $1\nEOF", ["--tp", "8"]),
    (f"T=4\nssh host <<EOF\ndocker run --rm img bash -c \"{P} --tp $T --m \\\"a b\\\"\"\nEOF", ["--tp", "4", "--m", "a b"]),
    (f"sudo bash -s <<EOF\n{P} a\nEOF", ["a"]),
    (f"docker exec -i c bash <<EOF\n{P} a\nEOF", ["a"]),
    (f"kubectl exec -i pod -- bash -s <<EOF\n{P} a\nEOF", ["a"]),
    (f"kubectl exec pod -c x -- bash -lc \"cd /w && {P} --j '{{\\\"a\\\":1}}'\"", ["--j", '{"a":1}']),
    (f"kubectl run x --image=i --restart=Never -- {P} a", ["a"]),
    (f"pdsh -w node[1-2] '{P} a'", ["a"]),
    (f"gcloud compute ssh vm --zone z --command '{P} a'", ["a"]),
    ("coverage run -m sglang.launch_server a", ["a"]),
    ("python -m debugpy --listen 1 -m sglang.launch_server a", ["a"]),
    (f"systemd-run --unit x --setenv=A=1 {P} a", ["a"]),
    (f"srun --nodes=2 --ntasks-per-node=1 bash -c \"{P} --node-rank \\$SLURM_PROCID\"", ["--node-rank", "?+"]),
    (f"sbatch -N 2 --exclusive <<'EOF'\n#!/bin/bash\nsrun {P} a\nEOF", ["a"]),
    (f"sbatch --parsable job.sh {P} a", ["a"]),
    (f"cat > job.sh <<EOF\nsrun {P} --tp \\$1\nEOF\nsbatch -N 2 --gpus-per-node 8 job.sh 4", ["--tp", "4"]),
    (f"sudo tee /opt/x.sh > /dev/null <<'EOF'\n{P} a\nEOF\nsudo bash /opt/x.sh", ["a"]),
    (f"echo -e '#!/bin/bash\\n{P} \\\\\\n a' > run.sh\nbash run.sh", ["a"]),
    (f"ssh host 'cat > run.sh' <<EOF\n{P} a\nEOF\nssh host bash run.sh", ["a"]),
    (f"cat > /tmp/run.sh <<EOF\n{P} a\nEOF\nchmod +x /tmp/run.sh\nnohup /tmp/run.sh > log 2>&1 &", ["a"]),
    (f"D=$(date +%F)\ncat > \"$D/run.sh\" <<EOF\n{P} a\nEOF\nbash \"$D/run.sh\"", ["a"]),
    # Functions.
    (f'run() {{ {P} --tp "$1" "${{@:2}}"; }}\nrun 4 --x', ["--tp", "4", "--x"]),
    (f'run() {{ "$@"; }}\nrun {P} a', ["a"]),
    (f'run() {{ echo "+ $*"; "$@"; }}\nrun {P} a', ["a"]),
    (f'f() {{ local X=1; }}\nX=2\nf\n{P} $X', ["2"]),
    (f'f() {{ X=1; return; X=3; }}\nX=2\nf\n{P} $X', ["1"]),
    (f'set -- a b\nshift\n{P} "$@" $#', ["b", "1"]),
    (f'parse() {{ while [[ $# -gt 0 ]]; do case "$1" in --tp) TP=$2; shift 2;; *) shift;; esac; done; }}\nparse --tp 4 x\n{P} $TP', ["4"]),
    # zsh.
    (f'#!/bin/zsh\nA=(--a "x y" --b)\nS="--c 1"\n{P} $A "$A" ${{A[2]}} "${{A[@]}}" $S ${{=S}}', ["--a", "x y", "--b", "--a x y --b", "x y", "--a", "x y", "--b", "--c 1", "--c", "1"]),
    # Conditions that are known.
    (f'X=1\nif [ "$X" = 1 ]; then Y=a; else Y=b; fi\n{P} $Y', ["a"]),
    (f'X=12\nif [[ $X -gt 8 && $X != 13 ]]; then Y=a; fi\n{P} $Y', ["a"]),
    (f'X=big-1\ncase $X in big*) Y=a;; *) Y=b;; esac\n{P} $Y', ["a"]),
    (f'X=x\n[[ -z $X ]] && Y=b\n[[ -n $X ]] && Y=a\n{P} $Y', ["a"]),
    (f'X=qwen3\n[[ $X =~ ^qwen(2|3)$ ]] && Y=a\n{P} $Y', ["a"]),
    (f'if (( 2 > 1 )); then Y=a; else Y=b; fi\n{P} $Y', ["a"]),
    (f'if [ -z "$TP" ]; then echo usage; exit 1; fi\n{P} "$TP"', ["?"]),
    (f'for x in a b; do F+=" --$x"; done\n{P} $F', ["--a", "--b"]),
    (f'{P} $(basename /x/y) $(echo z) $(hostname)', ["y", "z", "?+"]),
    (f'N=8\n{P} $( [[ $N -gt 4 ]] && echo 30 || echo 10 )', ["30"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ONE, ids=range(len(ONE)))
def test_one_launch(text: str, expected: list[str]) -> None:
    document = parse("run.sh", text + "\n")
    assert [[argv(v) for v in launch.variants] for launch in document.launches] == [[expected]]
    check_maps(document)


SEVERAL: list[tuple[str, list[list[list[str]]]]] = [
    (
        f'if [ $M = a ]; then X="--dp 8"; Y=1; else X=; Y=2; fi\n{P} $X --y $Y\n',
        [[["--dp", "8", "--y", "1"], ["--y", "2"]]],
    ),
    (
        f'TP=${{TP:-4}}\nif [ "$TP" = 8 ]; then X="--dp 8"; fi\n{P} --tp $TP $X\n',
        [[["--tp", "4"], ["--tp", "8", "--dp", "8"], ["--tp", "?+"]]],
    ),
    (
        f'case $1 in\n  small) TP=1;;\n  big) TP=8; X=--dp ;;\n  *) exit 1;;\nesac\n{P} --tp $TP ${{X:-}}\n',
        [[["--tp", "1"], ["--tp", "8", "--dp"]]],
    ),
    (
        f'MODEL=${{1:-a}}\ncase $MODEL in\n  a) TP=1;;\n  b) TP=8;;\nesac\n{P} $MODEL $TP\n',
        [[["a", "1"], ["b", "8"], ["?+", "?+"]]],
    ),
    (f'[ -z "${{X:-}}" ] && T=2\n{P} --tp $T\n', [[["--tp", "2"], ["--tp", "?+"]]]),
    (f'[ -z "$TP" ] && TP=4\n{P} --tp $TP\n', [[["--tp", "4"], ["--tp", "?+"]]]),
    (f'if [ $A = b ]; then EXTRA="--x"; fi\n{P} $EXTRA\n', [[["--x"], []]]),
    (f'A=(x)\n[[ -n $Q ]] && A+=(--q "$Q")\n{P} "${{A[@]}}"\n', [[["x"], ["x", "--q", "?"]]]),
    (f'A=(x)\nif $FLAG; then A+=(y); fi\n{P} "${{A[@]}}"\n', [[["x", "y"], ["x"]]]),
    (f"for s in 1 3; do\n  {P} --s $s &\ndone\n", [[["--s", "1"], ["--s", "3"]]]),
    (f"for s in {{1..3}}; do {P} $s; done\n", [[["1"], ["2"], ["3"]]]),
    (f'run() {{ {P} --m $1; }}\nrun a\nrun b\n', [[["--m", "a"], ["--m", "b"]]]),
    (f"TP=4\nwhile [[ $# -gt 0 ]]; do case $1 in --tp) TP=$2; shift 2;; *) shift;; esac; done\n{P} --tp $TP\n", [[["--tp", "4"], ["--tp", "?+"]]]),
    (f"{P} ${{X:+--flag $X}}\n", [[[], ["--flag", "?+"]]]),
    (f"if a; then {P} x; elif b; then {P} y; else {P} z; fi\n", [[["x"]], [["y"]], [["z"]]]),
    (f"X=1\ncheck || X=2\n{P} $X\n", [[["1"], ["2"]]]),
    (f"if grep -q x /proc/cpuinfo; then B=a; else B=b; fi\n{P} $B $B\n", [[["a", "a"], ["b", "b"]]]),
    (f"f() {{ if grep -q x y; then Y=1; return; fi; Y=2; }}\nf\n{P} $Y\n", [[["1"], ["2"]]]),
    (f'pre_a() {{ X=1; }}\npre_b() {{ X=2; Y=y; }}\nother() {{ X=3; }}\npre_$M\n{P} $X $Y\n', [[["1", "?+"], ["2", "y"]]]),
    (f'pre_a() {{ X=1; }}\npre_$M\n{P} $X\n', [[["1"]]]),
    (f'"a_$M" x\nX=2\na_b() {{ X=1; }}\n{P} $X\n', [[["2"]]]),
    (f'a() {{ {P} --m a "$@"; }}\nb() {{ {P} --m b; }}\n"$1" x\n', [[["--m", "a", "x"]], [["--m", "b"]]]),
    (f'a() {{ {P} --m a "$@"; }}\nb() {{ {P} --m b; }}\n"$@"\n', [[["--m", "a", "?*"]], [["--m", "b"]]]),
    (f'a() {{ X=1; }}\nb() {{ X=2; }}\nc() {{ "a$1"; {P} $X; }}\nX=0\nc ""\n', [[["1"]]]),
    # A variable that one way leaves unset: nothing where it holds flags, the environment's where it holds a plain value.
    (f'if [ $A = b ]; then N=3; fi\n{P} --n $N\n', [[["--n", "3"], ["--n", "?+"]]]),
    (f'if [ $A = b ]; then N=3; fi\n{P} --n "$N" --m=$N\n', [[["--n", "3", "--m=3"], ["--n", "?", "--m=?"]]]),
    (f'if [ $A = b ]; then N=3; fi\nF="--n $N"\nF+=" --m $N"\n{P} $F\n', [[["--n", "3", "--m", "3"], ["--n", "?+", "--m", "?+"]]]),
    (f'if [ $A = b ]; then N=3; fi\nC=({P} --n "$N")\n"${{C[@]}}"\n', [[["--n", "3"], ["--n", "?"]]]),
    (f'if [ $A = b ]; then N=3; fi\nif [ -n "$N" ]; then F="--n $N"; fi\n{P} $F\n', [[["--n", "3"], ["--n", "?+"], []]]),
    (f'if [ $A = b ]; then N=3; fi\n{P} ${{N:+--n $N}}\n', [[["--n", "3"], []]]),
    (f'if [ $A = b ]; then N="--a 3"; fi\n{P} $N\n', [[["--a", "3"], []]]),
    (f'if [ $A = b ]; then N=3; else N=; fi\n{P} --n $N\n', [[["--n", "3"], ["--n"]]]),
    # What a loop over unknown words or options collects.
    (f'E=()\nwhile [[ $# -gt 0 ]]; do case $1 in --fp8) E+=(--quantization fp8); shift;; --tp) T=$2; shift 2;; esac; done\n{P} --tp ${{T:-1}} "${{E[@]}}"\n', [[["--tp", "1"], ["--tp", "?+", "?*"], ["--tp", "?+", "?*", "--quantization", "fp8"]]]),
    (f'F=\nfor l in $LORAS; do F+=" --lora-path $l"; done\n{P} $F\n', [[[], ["?+", "--lora-path", "?+"]]]),
    (f'T=4\nwhile getopts "t:m:" o; do case $o in t) T=$OPTARG;; m) M=$OPTARG;; esac; done\n{P} --model $M --tp $T\n', [[["--model", "?+", "--tp", "4"], ["--model", "?+", "--tp", "?+"]]]),
    (f"select m in a b; do {P} --m $m; break; done\n", [[["--m", "a"], ["--m", "b"]]]),
    (f"for ((i = 0; i < N; i++)); do {P} --port $((30000 + i)) --x; done\n", [[["--port", "?+", "--x"]]]),
    (f"{P} a &\nsglang serve b &\nwait\n", [[["a"]], [["b"]]]),
    (f'while read -r m; do {P} --m "$m"; done < models\n', [[["--m", "?"]]]),
    (f"for i in 1 2; do if [ $i = 2 ]; then break; fi; {P} $i; done\n", [[["1"]]]),
    (f"for m in $MODELS; do {P} --m $m; done\n", [[["--m", "?+"]]]),
    # Functions that nothing here calls, with arguments that nobody knows.
    (f'T=2\nstart() {{ local m=$1; {P} $m --tp $T --p ${{2:-3}} "$@"; }}\n', [[["?+", "--tp", "2", "--p", "3", "?*"]]]),
    (f"a() {{ {P} a; }}\nb() {{ {P} b; }}\nb\nexit 0\n", [[["b"]], [["a"]]]),
    (f"a() {{ if [ \"$1\" = x ]; then {P} --x; return; fi; {P} --y; }}\na x\n", [[["--x"]]]),
    (f"a() {{ X=1; }}\nb() {{ {P} $X; }}\nX=2\n", [[["2"]]]),
    (f"a() {{ {P} $1; }}\nb() {{ a m; }}\n", [[["m"]]]),
    # What hangs on a variable that may be empty.
    (f'D="${{D:-}}"\n{P} ${{D:+--d "$D"}}\n', [[[], ["--d", "?"]]]),
    (f'D=${{D:-cpu}}\n{P} ${{D:+--d $D}}\n', [[["--d", "cpu"]]]),
    (f'Q=$(cmd)\n{P} ${{Q:+--q $Q}} ${{Q:+--x}}\n', [[[], ["--q", "?+", "--x"]]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SEVERAL, ids=range(len(SEVERAL)))
def test_several(text: str, expected: list[list[list[str]]]) -> None:
    document = parse("run.sh", text)
    found = [[argv(v) for v in launch.variants] for launch in document.launches]
    assert [sorted(v) for v in found] == [sorted(v) for v in expected]
    check_maps(document)


NONE = [
    # Help and release are printed, and nothing is served.
    "sglang serve --help",
    f"{START} -h | grep -- --tp",
    f"X=--help\n{START} --model-path m $X",
    "sglang serve m --version",
    # A function that nobody can read and that does not say that it starts what it is given.
    "write_command cmd.txt sglang serve m",
    "source ./lib.sh\nannounce sglang serve m",
    'CMD=(sglang serve m)\nlog_start "${CMD[@]}"',
    f"echo {P} --tp 8",
    f'echo "{P} --tp 8"',
    "pkill -f sglang.launch_server",
    "pgrep -f 'python -m sglang.launch_server' && echo up",
    f"# {P} --tp 8",
    f"cat <<EOF\n{P} --tp 8\nEOF",
    f'printf "%s" "{P}"',
    f'CMD="{P} --tp 8"',
    f"lib() {{ {P}; }}; lib() {{ :; }}",
    f"if false; then {P}; fi",
    f"exit 0\n{P}",
    "python -m sglang.bench_serving --model m",
    "python -m sglang_router.launch_router --policy x",
    "python -m sgl_jax.launch_server --model m",
    "python -c 'import sglang.launch_server'",
    "sglang generate --model-path m",
    "pip install sglang==0.5.9",
    "vllm serve m --attention-backend sglang",
    "tail -f sglang.log",
    "smg launch --worker-urls http://a  # sglang",
    "python -m sglang.launch_router --policy x",
    "python -m sglang.check_env",
    "python bench.py --sglang-url http://a --sglang-port 3",
    "python pretrain.py --attention-backend flash  # sglang",
    "sbatch serve_sglang.sh",
    "cat > notes.txt <<EOF\n{P}\nEOF\nless notes.txt",
    "cat > s.log <<EOF\n{P}\nEOF\nscp s.log host:",
    "cat > s.py <<EOF\n#!/usr/bin/env python3\n{P}\nEOF\n./s.py",
    "parallel < sglang-commands.txt",
    f"log '{P}'",
]


@pytest.mark.parametrize("text", NONE)
def test_no_launch(text: str) -> None:
    assert launches(text.replace("{P}", P) + "\n") == []


ENV = [
    (f"A=1 B='x y' {P}\n", {"A": "1", "B": "x y"}),
    (f"export A=1\nB=2\nexport B\nC=3\n{P}\n", {"A": "1", "B": "2"}),
    (f"env A=1 {P}\n", {"A": "1"}),
    (f"export A=1\nA=2 {P}\n", {"A": "2"}),
    (f"export A=1\ndocker run -e B=2 --env C=3 -e A img {P}\n", {"A": "1", "B": "2", "C": "3"}),
    (f"export A=1\ndocker run img {P}\n", {}),
    (f"export A=1 B=2\nbash -c 'C=3 {P}'\n", {"A": "1", "B": "2", "C": "3"}),
    (f"export A=1\nssh host 'B=2 {P}'\n", {"B": "2"}),
    (f"export A=1\nunset A\n{P}\n", {}),
    (f"mpirun -x A=1 -x B {P}\n", {"A": "1"}),
    (f"apptainer exec --env A=1,B=2 x.sif {P}\n", {"A": "1", "B": "2"}),
    (f"srun --export=ALL,A=1 {P}\n", {"A": "1"}),
    (f"cat > s.sh <<EOF\nexport B=2\n{P}\nEOF\nexport A=1\nC=3 bash s.sh\n", {"A": "1", "B": "2", "C": "3"}),
    (f"docker compose run -e A=1 server {P}\n", {"A": "1"}),
]


@pytest.mark.parametrize(("text", "expected"), ENV, ids=range(len(ENV)))
def test_environment(text: str, expected: dict[str, str]) -> None:
    (launch,) = parse("run.sh", text).launches
    assert {k: w.text for k, w in launch.variants[0].env.items()} == expected


CLUES = [
    (f"docker run --gpus all lmsysorg/sglang:v0.5.9-cu130 {P}\n", {("image", "lmsysorg/sglang:v0.5.9-cu130"), ("gpu-count", "all"), ("platform", "nvidia")}),
    (f"IMG=lmsysorg/sglang:v0.5.9\ndocker run $IMG {P}\n", {("image", "lmsysorg/sglang:v0.5.9")}),
    (f'pip install "sglang[all]==0.5.9"\n{P}\n', {("pin", "sglang[all]==0.5.9")}),
    (f"uv pip install sglang==0.5.9 x\n{P}\n", {("pin", "sglang==0.5.9")}),
    ("uvx --from sglang==0.5.9 sglang serve m\n", {("pin", "sglang==0.5.9")}),
    (f"#SBATCH --gres=gpu:h100:8\n#SBATCH -N 2\n#SBATCH --constraint h200 # x\n{P}\n", {("gpu", "gpu:h100:8"), ("nodes", "2"), ("gpu", "h200")}),
    (f"#SBATCH --gpus=8\n{P}\n", {("gpu-count", "8")}),
    (f"#!/bin/bash\n# why\n\n#SBATCH --gpus=8\nset -e\n#SBATCH -N 2\n{P}\n", {("gpu-count", "8")}),
    (f"{P}\ncat > j.sh <<EOF\n#SBATCH --gpus=8\nEOF\n", set()),
    (f"srun --gres gpu:a100:4 --container-image=x/sglang:v1 {P}\n", {("gpu", "gpu:a100:4"), ("image", "x/sglang:v1")}),
    (f"apptainer exec sglang_v0.5.9.sif {P}\n", {("image", "sglang_v0.5.9.sif")}),
    (f"CUDA_VISIBLE_DEVICES=0,1 {P}\n", {("gpu-count", "CUDA_VISIBLE_DEVICES=0,1")}),
    (f"sbatch -N 2 <<EOF\n#SBATCH --gres=gpu:h100:8\n{P}\nEOF\n", {("nodes", "2"), ("gpu", "gpu:h100:8")}),
    (f"cat > j.sh <<EOF\n#SBATCH --gpus=8\n{P}\nEOF\nsbatch j.sh\n", {("gpu-count", "8")}),
    (f'O=(--gpus all)\ndocker run "${{O[@]}}" $IMAGE {P}\n', {("gpu-count", "all"), ("platform", "nvidia")}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CLUES, ids=range(len(CLUES)))
def test_clues(text: str, expected: set[tuple[str, str]]) -> None:
    (launch,) = parse("run.sh", text).launches
    assert {(c.kind, c.text) for c in launch.clues} == expected


GIVEN_TO_OTHERS: list[tuple[str, int]] = [
    ('source lib.sh\nCMD=(sglang serve m)\nwrite_command "${CMD[@]}"\n"${CMD[@]}" &', 1),
    ('CMD=(sglang serve m)\nrun_and_wait "${CMD[@]}"\n"${CMD[@]}" &', 1),
    ('CMD=(sglang serve m)\n"${CMD[@]}" &\n"${CMD[@]}"', 2),
    ("start_server sglang serve m", 1),
    ("source lib.sh\nrun_logged sglang serve m", 1),
    ("source venv/bin/activate\ninfisical run -- sglang serve m", 1),
    ("./with-env.sh sglang serve m", 1),
    ("with-env sglang serve m", 1),
]


@pytest.mark.parametrize(("text", "count"), GIVEN_TO_OTHERS, ids=range(len(GIVEN_TO_OTHERS)))
def test_what_unknown_commands_are_given(text: str, count: int) -> None:
    assert len(launches(text)) == count


@pytest.mark.parametrize(
    "command",
    [
        "$PY -u -m sglang.launch_server",
        '"${PY}" -X dev -O -m sglang.launch_server',
        "srun $PY -u -m sglang.launch_server",
    ],
)
def test_an_unknown_interpreter_has_options_too(command: str) -> None:
    assert launches(f"nohup {command} --model-path m &\n") == [[["--model-path", "m"]]]


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("python -m sglang.bench_latency", "one_batch"),
        ("python -m sglang.bench_server_latency", "one_batch_server"),
        ("python -m sglang.launch_server_llavavid", "launch_server"),
        ("python3 -m sglang.benchmark.one_batch", "one_batch"),
        ("python3 sglang/python/sglang/bench_latency.py", "one_batch"),
        ('python3 "$ROOT"/python/sglang/launch_server.py', "launch_server"),
    ],
)
def test_entry_points_of_all_releases(command: str, program: str) -> None:
    (launch,) = parse("run.sh", f"{command} --model-path m\n").launches
    assert (launch.program, argv(launch.variants[0])) == (program, ["--model-path", "m"])


def test_files_that_the_script_writes() -> None:
    text = f"cat > cfg.yaml <<EOF\ntp: 4\nmodel: $M\nEOF\nsed -i s/x/y/ other\n{P} --config ./cfg.yaml\n"
    (launch,) = parse("run.sh", text).launches
    (file,) = launch.variants[0].files
    assert file.name == "./cfg.yaml"
    assert told_content(file.content) == "tp: 4\nmodel: ?\n"


def told_content(word: object) -> str:
    return "".join("?" if f.text is None else f.text for f in word.fragments)  # type: ignore[attr-defined]


def test_sourced_files_are_followed_and_named() -> None:
    files = {"lib/common.sh": 'BASE=(--a 1)\nstart() { python -m sglang.launch_server "${BASE[@]}" "$@"; }\n'}
    text = 'DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nsource "$DIR/lib/common.sh"\nstart --b  # sglang\n'
    document = parse("run.sh", text, files.get)
    assert document.depends_on == {"lib/common.sh"}
    (launch,) = document.launches
    assert [w.text for w in launch.variants[0].words] == ["--a", "1", "--b"]
    assert launch.place.document == "lib/common.sh"
    assert launch.variants[0].words[2].place.document == "run.sh"


def test_many_ways_are_capped_presets_first() -> None:
    presets = "\n".join(f"  p{i}) TP={i};;" for i in range(20))
    options = "\n".join(f'[[ -n "$O{i}" ]] && A+=(--o{i} "$O{i}")' for i in range(8))
    text = f'A=()\ncase $1 in\n{presets}\n  *) exit 1;;\nesac\n{options}\n{P} --tp $TP "${{A[@]}}"\n'
    (launch,) = parse("run.sh", text).launches
    assert len(launch.variants) <= 64
    assert {argv(v)[1] for v in launch.variants} == {str(i) for i in range(20)}


def test_choices_tell_the_ways() -> None:
    text = f"if [ $M = a ]; then X=1; else X=2; fi\n{P} $X\n"
    (launch,) = parse("run.sh", text).launches
    assert [[c.taken for c in v.choices] for v in launch.variants] == [["`[ $M = a ]` holds"], ["`[ $M = a ]` fails"]]


SIZES = 'case "$1" in\n  s) T=1;;\n  b) T=8;;\n  *) exit 1;;\nesac\n'


@pytest.mark.parametrize(
    "launches",
    [
        "sglang serve m --tp $T\n",
        "start() { sglang serve m --tp $T; }\nstart\n",
        "start() { sglang serve m --tp $1; }\nstart $T\n",
        'CMD="sglang serve m --tp $T"\neval "$CMD"\n',
    ],
)
def test_ways_that_ended_the_script_are_not_told(launches: str) -> None:
    (launch,) = parse("run.sh", SIZES + launches).launches
    told = {v.words[-1].text: [c.taken for c in v.choices] for v in launch.variants}
    assert told == {"1": ['`"$1"` is `s`'], "8": ['`"$1"` is `b`']}


@pytest.mark.parametrize("run", ['eval "$C"', 'bash -c "$C"', 'ssh host "$C"', "$C", 'tmux send-keys "$C" Enter'])
def test_a_text_put_together_in_several_ways_is_one_launch(run: str) -> None:
    text = f'C="sglang serve $M --tp 2"\nif [ -n "$Q" ]; then C="$C --q $Q"; fi\n[ "$D" = 1 ] && C+=" --debug"\n{run}\n'
    (launch,) = parse("run.sh", "if $X; then M=a; else M=b; fi\n" + text).launches
    told = {argv(v)[0] for v in launch.variants}
    assert told == {"a", "b"}
    assert len(launch.variants) == 8


@pytest.mark.parametrize(
    "run",
    ['eval "sglang serve m $A"', 'bash -c "cd /x && sglang serve m $A"', 'eval "$E sglang serve m $A ${B:+--q $B}"',
     "ssh host sglang serve m $A", 'docker exec c bash -lc "${E} sglang serve m ${A}" &'],
)  # fmt: skip
def test_a_text_that_ends_elsewhere_on_each_way_is_one_launch(run: str) -> None:
    text = f'A=\nE=\nif [ "$T" = 1 ]; then A="--tp 2"; E="X=1"; fi\n{run}\n'
    (launch,) = parse("run.sh", text).launches
    assert ["m", "--tp", "2"] in [argv(v)[:3] for v in launch.variants]
    assert len(launch.variants) > 1
    assert launch.extent.end >= text.index("$A" if "$A" in run else "${A}", text.index(run))


def test_texts_of_one_line_are_launches_of_their_own() -> None:
    text = 'S="sglang serve"\n$S a --tp 1; $S b --tp 2\nbash -c "$S c; sglang serve d; sglang serve e"\n'
    assert [argv(v)[0] for one in parse("run.sh", text).launches for v in one.variants] == ["a", "b", "c", "d", "e"]


def test_a_text_whose_first_words_differ_on_each_way_is_one_launch() -> None:
    text = 'if $X; then PY="uv run python"; else PY=python3; fi\nbash -c "$PY -m sglang.launch_server $A"\n'
    (launch,) = parse("run.sh", text).launches
    assert len(launch.variants) == 1


def test_a_text_run_twice_is_two_launches() -> None:
    text = 'C="sglang serve m"\nif $X; then C="$C --tp 2"; fi\neval "$C --port 1"\neval "$C --port 2"\n'
    assert [len(one.variants) for one in parse("run.sh", text).launches] == [2, 2]


def test_rounds_of_a_loop_tell_their_ways_alike() -> None:
    """In the second round the script has taken a way already, and what is called does not depend on it again."""
    text = SIZES + "start() { sglang serve m --tp $T --port $1; }\nfor i in 1 2; do start $((i * T)) & done\n"
    (launch,) = parse("run.sh", text).launches
    assert {tuple(c.taken for c in v.choices) for v in launch.variants} == {
        (f"`i` is `{i}`", f'`"$1"` is `{size}`') for i in (1, 2) for size in "sb"
    }


@pytest.mark.parametrize(
    ("first", "second", "ways"),
    [
        ('[ "$A" = on ]', '[ "$A" = on ]', 2),
        ('[ "$A" = on ]', '[[ ${A} == "on" ]]', 2),
        ('[ "$A" = on ]', 'test "$A" != on', 2),
        ('[ -n "$A" ]', "[[ -z $A ]]", 2),
        ('[ "$A" -gt 4 ]', '[ "$A" -gt 4 ]', 2),
        ('[[ "$A" == on && "$B" == on ]]', '[[ "$A" == on && "$B" == on ]]', 2),
        ('[ "$1" = on ]', '[ "$1" = on ]', 2),
        # These may come out otherwise when they are asked again.
        ('[ "$A" -gt 4 ]', '[ "$A" -gt 8 ]', 4),
        ('[ "$A" -gt 4 ]', 'A=$C; [ "$A" -gt 4 ]', 4),
        ("[ -f x ]", "[ -f x ]", 4),
        ('[ "$(cat x)" = on ]', '[ "$(cat x)" = on ]', 4),
        ('[ "$RANDOM" -gt 9 ]', '[ "$RANDOM" -gt 9 ]', 4),
    ],
)
def test_a_test_that_is_asked_again_comes_out_the_same(first: str, second: str, ways: int) -> None:
    text = f'F=()\nif {first}; then F+=(--a); fi\nif {second}; then F+=(--b); fi\nsglang serve m "${{F[@]}}"\n'
    (launch,) = parse("run.sh", text).launches
    assert len(launch.variants) == ways


ENTRIES = "declare -A M=([s]=org/s [b]=org/b)\ndeclare -A E=([s]=--a [b]='--b 1')\nI=('--a 1' --b)\n"


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        (f"{P} ${{M[$1]}} ${{E[$1]}}", ["org/s --a", "org/b --b 1"]),
        (f'{P} "${{M["$S"]}}" ${{E[${{S}}]}}', ["org/s --a", "org/b --b 1"]),
        (f'N="${{1:-s}}"\n[ -z "${{M[$N]}}" ] && exit 1\n{P} ${{M[$N]}} ${{E[$N]}}', ["org/s --a", "org/b --b 1"]),
        (f"{P} m ${{E[$1]:-}}", ["m", "m --a", "m --b 1"]),
        (f"{P} m ${{E[$1]:---c}}", ["m --c", "m --a", "m --b 1"]),
        (f"{P} m ${{I[$SLURM_PROCID]}} ${{I[SLURM_PROCID]}}", ["m --a 1 --a 1", "m --b --b"]),
        (f"for n in $(seq $N); do {P} m ${{I[$n]}} & done", ["m --a 1", "m --b"]),
        (f"A=()\nfor n in $@; do A+=(${{E[$n]}}); done\n{P} m ${{A[@]}}", ["m", "m ?+ --a", "m ?+ --b 1"]),
        (f"H=($(hosts))\n{P} m ${{H[$1]}}", ["m ?+"]),
    ],
)
def test_an_unknown_subscript_may_be_any_of_the_keys(text: str, ways: list[str]) -> None:
    (launch,) = parse("run.sh", ENTRIES + text + "\n").launches
    assert sorted(" ".join(argv(v)) for v in launch.variants) == sorted(ways)


def test_a_branch_inside_the_same_branch_is_no_turn() -> None:
    text = 'if [ "$A" = 1 ]; then\n  if [ "$A" = 1 ]; then T=2; else T=3; fi\n  sglang serve m --tp $T\nfi\n'
    (launch,) = parse("run.sh", text).launches
    assert [[w.text for w in v.words] for v in launch.variants] == [["m", "--tp", "2"]]


def test_past_the_cap_what_all_ways_have_is_kept() -> None:
    """Seven switches make more ways than are told: the words around them stay, and no way is lost for another."""
    switches = "".join(f'[ "$X{i}" = on ] && F+=(--x{i})\n' for i in range(7))
    text = f'CMD=(sglang serve m --tp 2)\nF=()\n{switches}CMD+=("${{F[@]}}" --port 1)\n"${{CMD[@]}}"\n'
    (launch,) = parse("run.sh", text).launches
    assert len(launch.variants) <= 64
    for variant in launch.variants:
        texts = [w.text for w in variant.words]
        assert texts[:3] == ["m", "--tp", "2"]
        assert texts[-2:] == ["--port", "1"]
    words = {w.text for v in launch.variants for w in v.words}
    assert None in words or words >= {f"--x{i}" for i in range(7)}


def test_a_launch_behind_very_many_commands_is_found() -> None:
    text = "echo hello $X\n" * 13_000 + "sglang serve m --tp 2\n"
    (launch,) = parse("run.sh", text).launches
    assert [w.text for w in launch.variants[0].words] == ["m", "--tp", "2"]


@pytest.mark.parametrize(
    ("test", "flags"),
    [
        ('if [[ $M == a* ]]; then F="$F --z"; fi', "--x"),
        ('[ "$M" = c ] && F="$F --z"', "--x"),
        ('[ "$M" != c ] && F="$F --z"', "--x --z"),
        ('[ -z "$M" ] && F="$F --z"', "--x"),
        ('[[ -n $M ]] && F="$F --z"', "--x --z"),
        ('[[ $M =~ ^[12]$ ]] && F="$F --z"', "--x --z"),
        ('if [ "$M" -gt 2 ]; then F="$F --z"; fi', "--x"),
        ('case $M in a|b) F="$F --z";; 1|2|3) F="$F --y";; esac', "--x --y"),
    ],
)
def test_an_arm_with_several_patterns_says_what_a_value_may_be(test: str, flags: str) -> None:
    """Tests within it, and behind it on the way through it, come out as they must."""
    for text in (
        f'case "$M" in 1|2) F="--x"\n{test} ;; esac\nsglang serve m $F\n',
        f'case "$M" in 1|2) F="--x" ;; *) exit 1 ;; esac\n{test}\nsglang serve m $F\n',
    ):
        (launch,) = launches(text)
        assert ["m", *flags.split()] in launch
        assert len([argv for argv in launch if "--x" in argv]) == 1, launch


def test_a_function_that_is_called_by_what_an_arm_says() -> None:
    text = 'start() { sglang serve m; }\nstop() { :; }\ncase "$1" in start|stop) "$1" ;; *) exit 1 ;; esac\n'
    assert launches(text) == [[["m"]]]


@pytest.mark.parametrize(
    "handed_on",
    [
        f"{P} $COMMON --port 1\n",
        f'bash -c "{P} $COMMON --port 1"\n',
        f'eval "{P} $COMMON --port 1"\n',
        f'ssh host "{P} $COMMON --port 1"\n',
        f"bash <<EOF\n{P} $COMMON --port 1\nEOF\n",
        f"cat > run.sh <<EOF\nexec {P} $COMMON --port 1\nEOF\n",
        f"cat > run.sh <<EOF\n{P} \\\\\n  ${{COMMON}} \\\\\n  --port 1\nEOF\nbash run.sh\n",
    ],
)
def test_words_that_a_variable_brings_into_a_text_stand_where_it_is_assigned(handed_on: str) -> None:
    text = f'COMMON="--tp 8 --bogus-flag"\n{handed_on}'
    (launch,) = parse("run.sh", text, lambda path: None).launches
    places = {told(word): word.place for word in launch.variants[0].words}
    assert {text[p.start : p.end] for name, p in places.items() if name in ("--tp", "8", "--bogus-flag")} == {
        "--tp", "8", "--bogus-flag",
    }  # fmt: skip
    assert places["--bogus-flag"].end <= text.index("\n")
    assert places["--port"].start > text.index("\n")


ALIASES = "shopt -s expand_aliases\n"
LATER: list[tuple[str, list[list[str]]]] = [
    (f"{ALIASES}alias go='{P} --tp 8'\ngo --port 1", [["--tp", "8", "--port", "1"]]),
    (f"{ALIASES}alias go='{P} --tp 8'\nX=1 go --m 'a b' > log &", [["--tp", "8", "--m", "a b"]]),
    (f"{ALIASES}alias a=\"{P}\" b='a --dp 2'\nb --m x", [["--dp", "2", "--m", "x"]]),
    (f"#!/bin/sh\nalias go='{P}'\ngo --tp 2", [["--tp", "2"]]),
    (f"#!/usr/bin/env zsh\nalias go='{P}'\ngo --tp 2", [["--tp", "2"]]),
    (f"#!/bin/bash\nalias go='{P}'\ngo --tp 2", []),
    (f"#!/usr/bin/env bash\nalias go='{P}'\ngo --tp 2", []),
    (f"alias go='{P}'\ngo --tp 2", []),
    (f"{ALIASES}alias go='{P}'\n'go' --tp 2", []),
    (f"{ALIASES}alias go='{P}'\nunalias go\ngo --tp 2", []),
    (f"{ALIASES}alias go='{P}'\nshopt -u expand_aliases\ngo --tp 2", []),
    (f"trap '{P} --tp 2' EXIT", [["--tp", "2"]]),
    (f"trap -- '{P} --tp 2; exit 1' INT TERM\n{P} --tp 4", [["--tp", "2"], ["--tp", "4"]]),
    (f'M=x\ntrap "{P} --m $M" ERR', [["--m", "x"]]),
    (f"go() {{ {P} --tp 2; }}\ntrap go EXIT", [["--tp", "2"]]),
    (f"trap - EXIT\ntrap '' INT\ntrap\ntrap -l\n{P} --tp 4", [["--tp", "4"]]),
    (f"T=1\ntrap 'T=2; {P} --tp $T' EXIT\n{P} --tp $T", [["--tp", "2"], ["--tp", "1"]]),
]
"""What an alias brings in, where its shell expands it, and what a trap runs later."""


@pytest.mark.parametrize(("script", "expected"), LATER)
def test_aliases_and_traps(script: str, expected: list[list[str]]) -> None:
    assert [variants[0] for variants in launches(script + "\n")] == expected
    check_maps(parse("run.sh", script + "\n", lambda path: None))
