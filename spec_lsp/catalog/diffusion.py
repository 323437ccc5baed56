"""`sglang serve` of a diffusion model: another server with another parser (`sglang/multimodal_gen`), which we do not check.

SGLang decides by the model's files. Here it is recognized by a flag that only the other parser has, or by the name of a well-known model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spec_lsp.expressions import expression

FLAGS = expression(
    r"--(?:num-gpus|ulysses-degree|ring-degree|sp-degree|cfg-parallel-size|enable-cfg-parallel|num-inference-steps|guidance-scale(?:-2)?|"
    r"num-frames|fps|(?:vae|dit|text-encoder|image-encoder)-cpu-offload|dit-[\w-]+|vae-[\w-]+|transformer-weights-path|pin-cpu-memory|"
    r"use-fsdp-inference|hsdp-[\w-]+|enable-teacache|cache-dit-config|diffusers-[\w-]+|pipeline-class-name|workload-type|webui(?:-port)?|"
    r"disagg-(?:role|server-addr|timeout|instance-id|dispatch-policy)[\w-]*|(?:encoder|decoder|denoiser)-(?:tp|sp|ulysses|ring)|"
    r"(?:decoder|denoiser)-urls|layerwise-[\w-]+|component-[\w-]+|VSA-sparsity|STA-mode|moba-config-path|override-transformer-cls-name|"
    r"performance-mode|lora-(?:nickname|scale|merge-mode|weight-name)|output-type|num-outputs-per-prompt|boundary-ratio|batching-[\w-]+|"
    r"output-path|input-save-path|model-variant|model-subfolder|attention-backend-config|(?:enable-)?cache-dit[\w-]*|scheduler-rpc-timeout|"
    r"warmup-(?:resolutions|mode|num-frames|sampling-params)|server-warmup|regional-compile|kv-gather-degree|encoder-parallel|strict-ports|"
    r"(?:upscaling|frame-interpolation|spectrum|minimax-h3|flux3|ltx2)-[\w-]+|enable-(?:svdquant|spectrum|upscaling|frame-interpolation)|"
    r"quantization-(?:act-unsigned|ignored-layers|precision|rank)|(?:image|prompt)-encoder-urls|cpu-offload-components|"
    r"(?:use|load)-diffusion-decoder|prompt-file-path|disagg-(?:downstream|max-slots|p2p)[\w-]*)\Z"
)
"""Flags of `multimodal_gen/runtime/server_args.py` (0.5.5 to 0.5.23) that `ServerArgs` never had."""

MODELS = expression(
    r"(?:\A|/)(?:FLUX[.\d]|Wan2|Wan-AI/|Qwen-Image|HunyuanVideo|Hunyuan3D|Z-Image|stable-diffusion|LTX-?(?:Video|2)|FastWan|FastHunyuan|"
    r"GLM-Image|MOVA|SANA|Helios|MiniMax-H3|FastVideo/|Cosmos-?(?:Predict|Transfer))|-diffusers\Z|diffusion(?!gemma)", re.I
)  # fmt: skip


def serves_diffusion(texts: Iterable[str]) -> bool:
    """Whether the words of `sglang serve` start the diffusion server."""
    before = ""
    for position, text in enumerate(texts):
        name, equals, value = text.partition("=")
        if FLAGS.match(name):
            return True
        given = value if equals else text
        named = (name if equals else before) in ("--model-path", "--model")
        if (named or (position == 0 and text[:1] != "-")) and MODELS.search(given):
            return True
        if (name if equals else before) == "--model-type":
            return given == "diffusion"
        before = text
    return False
