"""What the groups of processes refuse when they are made: stages, contexts, time limits, workers of the tokenizer.

Follows distributed/utils.py (get_pp_indices), distributed/parallel_state.py (initialize_model_parallel) and entrypoints/ (0.5.23).

Left out: networks, ports in use and modules that a flag names.
"""

from __future__ import annotations

from spec_lsp.facts.classes import class_facts
from spec_lsp.resolution.engine import (
    NO_FIX,
    Config,
    Earlier,
    Handler,
    Refusal,
    dropping,
    dropping_env,
    setting,
    setting_env,
)
from spec_lsp.resolution.late.refused import value_refused

process_groups = Handler("distributed/utils.py:get_pp_indices")

PARTITION = "SGLANG_PP_LAYER_PARTITION"


def _evenly(layers: int, stages: int) -> str:
    """As many layers to a stage as to the others, the last ones with one more."""
    return ",".join(str(layers // stages + (stage >= stages - layers % stages)) for stage in range(stages))


@process_groups.refuses(
    "SPC999", "partition-of-other-stages", raises="ValueError", late=True,
    bad=(
        f"{PARTITION}=10,10 -- --pp-size 2",
        f"{PARTITION}=8,8,8,8 -- --pp-size 2",
        f"{PARTITION}=16+16 -- --pp-size 2",
    ),
    good=(f"{PARTITION}=14,18 -- --pp-size 2", f"{PARTITION}=10,10 -- --tp-size 2"),
)  # fmt: skip
def partition_of_other_stages(c: Config) -> Refusal | None:
    """The partition does not share the model's layers among its pipeline stages.

    `SGLANG_PP_LAYER_PARTITION` has a number of layers for each stage, with commas between them: as many numbers as `--pp-size` says, and
    together all layers of the model. Without it every stage has as many as the others.
    """
    partition = c.env.text(PARTITION, "") or ""
    facts = class_facts(c.model.architecture, c.release)
    if c.pp_size <= 1 or not partition or facts is None or not facts.stages:
        return None
    layers, parts = c.model.num_hidden_layers, partition.split(",")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        why = "it is no list of numbers"
    else:
        if len(numbers) != c.pp_size:
            why = f"{c.shown('pp_size')} makes {c.pp_size} stages, and it has {len(numbers)} numbers"
        elif sum(numbers) != layers:
            why = f"this model has {layers} layers, and it has {sum(numbers)}"
        else:
            return None
    return Refusal(
        at=PARTITION,
        related_fields=("pp_size", "model_path"),
        message=f"`{PARTITION}={partition}` is refused when the layers are built: {why}.",
        fixes=(setting_env(**{PARTITION: _evenly(layers, c.pp_size)}), dropping_env(PARTITION)),
    )


@process_groups.refuses(
    "SPC1000", "context-ranks-not-dividing-tp", raises="RuntimeError", late=True, since="0.5.15",
    sglang="distributed/parallel_state.py:initialize_model_parallel",
    bad="--tp-size 4 --dcp-size 3",
    good="--tp-size 16 --nnodes 2 --dcp-size 2",
)  # fmt: skip
def context_ranks_not_dividing_tp(c: Config) -> Refusal | None:
    """The ranks of a shared decode context are a part of the TP ranks.

    `--dcp-size` cuts the TP ranks into groups of that size, so it has to divide `--tp-size`.
    """
    ranks = c.dcp_size or 1
    if ranks <= 1 or c.tp_size % ranks == 0:
        return None
    fewer = next(n for n in range(min(ranks, c.tp_size), 0, -1) if c.tp_size % n == 0)
    return value_refused(
        c,
        "dcp_size",
        f"does not divide the {c.tp_size} TP ranks, and SGLang stops when it makes their groups.",
        "tp_size",
        fixes=(*((setting(dcp_size=fewer),) if fewer > 1 else ()), dropping("dcp_size")),
    )


@process_groups.refuses(
    "SPC1001", "distributed-timeout-below-one", raises="AssertionError", late=True,
    sglang="distributed/parallel_state.py:init_distributed_environment",
    bad="--dist-timeout 0", good="--dist-timeout 600",
)  # fmt: skip
def distributed_timeout_below_one(c: Config) -> Refusal | None:
    """The ranks wait for each other for a second at least.

    `--dist-timeout` counts seconds.
    """
    if c.dist_timeout is None or c.dist_timeout > 0:
        return None
    return value_refused(
        c, "dist_timeout", "is no time to wait for other ranks, and SGLang stops when it makes their groups. Remove it."
    )


INIT_METHOD = "SGLANG_DISTRIBUTED_INIT_METHOD_OVERRIDE"


@process_groups.refuses(
    "SPC1140", "nodes-without-meeting-place", raises="RuntimeError", late=True,
    sglang="distributed/bootstrap.py:_resolve_dist_init_method",
    earlier=(Earlier("0.5.18", "model_executor/model_runner.py:init_torch_distributed"),),
    bad=(
        "--tp-size 2 --nnodes 2 --node-rank 0",
        "sglang=0.5.12 -- --tp-size 2 --nnodes 2 --node-rank 1 --host 10.0.0.1",
    ),
    good=(
        "--tp-size 2 --nnodes 2 --dist-init-addr 10.0.0.1:5000",
        "--tp-size 2 --nnodes 2 --host 10.0.0.1 --nccl-port 5000",
        "--tp-size 2 --nnodes 2 --use-ray",
        f"{INIT_METHOD}=env:// -- --tp-size 2 --nnodes 2",
    ),
)  # fmt: skip
def nodes_without_meeting_place(c: Config) -> Refusal | None:
    """The nodes of one server have to be told where they meet.

    With `--nnodes` above 1 every node needs the same `--dist-init-addr HOST:PORT`: an address of the first node (`--node-rank 0`), and a
    port that is free there. Without it each node waits at its own address and at a port that it draws at random, so that no other node
    comes; attention data parallelism stops at once.
    """
    if c.nnodes <= 1 or c.dist_init_addr or c.nccl_port or c.use_ray or c.env.text(INIT_METHOD, ""):
        return None
    return Refusal(
        at="nnodes",
        message=f"{c.shown('nnodes')} needs `{c.flag('dist_init_addr')} HOST:PORT`, an address of the first node, the same on all nodes: "
        "without it each node waits for the others at a random port of its own and gives up before it loads any weights.",
        fixes=NO_FIX,
    )


@process_groups.refuses(
    "SPC1002", "api-key-with-tokenizer-workers", raises="AssertionError", late=True,
    sglang="entrypoints/http_server.py:init_multi_tokenizer",
    bad="--api-key secret --tokenizer-worker-num 4",
    good=("--api-key secret", "--tokenizer-worker-num 4"),
)  # fmt: skip
def api_key_with_tokenizer_workers(c: Config) -> Refusal | None:
    """Several tokenizer workers cannot be combined with an API key.

    `--tokenizer-worker-num` above 1 starts HTTP workers that do not look at keys. Put the key in a proxy before the server, or use one
    worker.
    """
    if c.api_key is None or (c.tokenizer_worker_num or 1) <= 1:
        return None
    return value_refused(
        c,
        "tokenizer_worker_num",
        f"cannot be combined with `{c.flag('api_key')}`: the workers do not look at keys, and each of them stops when it starts.",
        "api_key",
        fixes=(dropping("tokenizer_worker_num"), dropping("api_key")),
    )


DEVICES = ("cuda", "cpu", "xpu", "npu", "hpu", "musa")
"""The devices that SGLang runs on."""
TORCH_DEVICES = frozenset(
    (*DEVICES, "mps", "meta", "xla", "tpu", "mtia", "vulkan", "ipu", "mlu", "maca", "gcu", "kunlun", "privateuseone")
)
"""What PyTorch and its extensions call devices: a plug-in of SGLang's may serve on one of them."""


@process_groups.refuses(
    "SPC1029", "unknown-device", raises="RuntimeError", late=True,
    sglang="distributed/bootstrap.py:init_parallel_runtime",
    earlier=(
        Earlier("0.5.18", "model_executor/model_runner.py:init_torch_distributed"),
        Earlier("0.5.21", "model_executor/model_runner.py:__init__"),
    ),
    bad=("--device gpu", "--device CUDA"), good=("--device cuda", "--device cpu"),
)  # fmt: skip
def unknown_device(c: Config) -> Refusal | None:
    """PyTorch knows no device of this name.

    `--device` takes PyTorch's names, in lower case: an NVIDIA or AMD GPU is `cuda`. SGLang chooses it by itself.
    """
    device = c.typed("device")
    if not device or device.partition(":")[0] in TORCH_DEVICES:
        return None
    meant = device.lower() in ("gpu", "auto", *DEVICES)
    return Refusal(
        at="device",
        message=f"{c.shown('device')} is no device of PyTorch, and the scheduler stops when it starts. Remove it: SGLang finds the device.",
        choices=() if meant else DEVICES,
    )
