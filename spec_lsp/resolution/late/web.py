"""What the server of HTTP requests refuses when it starts: log levels, templates of prompts.

Follows entrypoints/http_server.py (_setup_and_run_http_server) and parser/template_manager.py (0.5.23).

Left out: ports in use, certificates that cannot be read, templates that are files.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, setting
from spec_lsp.resolution.serving import rust_server

web_server = Handler("entrypoints/http_server.py:_setup_and_run_http_server")

LOG_LEVELS = ("critical", "error", "warning", "info", "debug", "trace")
"""The log levels of uvicorn (`LOG_LEVELS` of its config.py)."""
PYTHON_LEVELS = {"warn": "warning", "fatal": "critical", "notset": "trace"}
"""What Python calls some of them, too."""


@web_server.refuses(
    "SPC1027", "log-level-unknown-to-web-server", raises="KeyError", late=True,
    earlier=(Earlier("0.5.11", "entrypoints/http_server.py:launch_server"),),
    bad=("--log-level WARN", "--log-level info --log-level-http fatal"),
    good=("--log-level warning", "--log-level WARN --log-level-http warning", "--log-level WARN --enable-http2"),
)  # fmt: skip
def log_level_unknown_to_web_server(c: Config) -> Refusal | None:
    """The web server knows fewer log levels than Python.

    `--log-level-http`, else `--log-level`, is handed to uvicorn. Python takes `warn` and `fatal` for `warning` and `critical`; uvicorn does
    not, so the model is loaded and no port is ever opened.
    """
    field = "log_level_http" if c.log_level_http else "log_level"
    level = getattr(c, field)
    if not level or level.lower() in LOG_LEVELS or not c.given(field) or not c.flag_as_typed(field).startswith("`--"):
        return None
    if c.grpc_mode or c.smg_grpc_mode or c.enable_http2 or c.node_rank or rust_server(c):
        return None
    meant = PYTHON_LEVELS.get(level.lower())
    return Refusal(
        at=field,
        message=f"{c.shown(field)} is no log level of uvicorn, so the server loads the model and then opens no port.",
        fixes=(setting(**{field: meant}),) if meant else None,
        choices=() if meant else LOG_LEVELS,
    )


_CHAT_TEMPLATES = {
    "": (
        "chatml", "chatml-llava", "deepseek-vl2", "devstral", "gemma-it", "gme-qwen2-vl", "internlm2-chat", "internvl-2-5", "janus-pro",
        "kimi-vl", "llama-2", "llama-4", "llama_3_vision", "llava_llama_3", "minicpmo", "minicpmv", "mistral", "phi-4-mm", "qwen2-audio",
        "qwen2-vl", "vicuna_v1.1",
    ),
    "0.5.4": ("deepseek-ocr", "points-v15-chat"),
    "0.5.6.post2": ("paddle-ocr",),
    "0.5.10": ("whisper",),
    "0.5.11": ("moss-vl",),
    "0.5.15": ("unlimited-ocr",),
    "0.5.23": ("glm-5.3", "glm-5.3-flash"),
}  # fmt: skip
COMPLETION_TEMPLATES = ("deepseek_coder", "qwen_coder", "star_coder")


def chat_templates(c: Config) -> tuple[str, ...]:
    """The templates that SGLang registers by name (parser/conversation.py, parser/python_chat_template.py)."""
    return tuple(name for since, names in _CHAT_TEMPLATES.items() if not since or c.since(since) for name in names)


templates = Handler(
    "parser/template_manager.py:_load_explicit_chat_template",
    earlier=(Earlier("0.5.16", "managers/template_manager.py:_load_explicit_chat_template"),),
)


@templates.notes(
    "SPC1028", "unregistered-template", severity="warning", since="0.5.6",
    bad=("--chat-template llama2", "--completion-template qwencoder"),
    good=("--chat-template llama-2", "--chat-template ./llama2.jinja", "--completion-template qwen_coder"),
)  # fmt: skip
def unregistered_template(c: Config) -> Refusal | None:
    """No template of SGLang's own has this name.

    `--chat-template` and `--completion-template` take the name of a template that SGLang brings, or else a file's path. The server stops
    where there is neither.
    """
    for field, names in (("chat_template", chat_templates(c)), ("completion_template", COMPLETION_TEMPLATES)):
        name = getattr(c, field)
        if name and name not in names and not set("/\\.").intersection(name):
            return Refusal(
                at=field,
                message=f"{c.shown(field)} is no template of SGLang's own: unless it is a file, the server stops when it starts.",
                choices=names,
            )
    return None
