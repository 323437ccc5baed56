# %% [markdown]
# Launch with `python -m sglang.launch_server`.

# %%
from sglang.test.doc_patch import launch_server_cmd
from sglang.utils import wait_for_server

server_process, port = launch_server_cmd(
    "python3 -m sglang.launch_server --model-path acme/dense --host 0.0.0.0 --log-level warning"
)
wait_for_server(f"http://localhost:{port}")

# %%
for size in [1, 2]:
    launch_server_cmd(f"sglang serve acme/dense --tp {size} --enable-lora --lora-paths lora0=acme/lora --max-loras-per-batch 2")
