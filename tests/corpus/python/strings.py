"""Start it with `python -m sglang.launch_server --model-path X --tp 3`."""
from sglang.utils import execute_shell_command, launch_server_cmd

HELP = "usage: python -m sglang.launch_server --model-path MODEL"

server, port = launch_server_cmd(
    """
python3 -m sglang.launch_server --model-path acme/dense \
 --tp 2 --served-model-name "a \"quoted\" name"
"""
)
execute_shell_command(r"sglang serve acme/d\ense --tp 2")
é = "é😀"; launch_server_cmd("sglang serve acme/" + "other" + f" --tp {1 + 1} --chat-template {é} --log-level {port!r}")
print("python -m sglang.launch_server --tp 3")
raise SystemExit("run: sglang serve acme/dense --tp 3")
