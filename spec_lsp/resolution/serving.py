"""The server around the model: defaults, deprecated flags, TLS, gRPC, tokenizers, media, load balancing.

Follows arg_groups/serving_hook.py; before 0.5.19 the methods of ServerArgs with the same names.

Left out: whether TLS files and watermark files exist; whether the `granian` package is installed, which
`--enable-http2` needs; ModelScope downloads; what stop strings in `--preferred-sampling-params` need of a tokenizer;
environment variables that are only passed on to workers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution import diffusion
from spec_lsp.resolution.engine import MOVED, Change, Config, Earlier, Handler, Refusal, dropping, dropping_env, setting

handle_dllm_inference = diffusion.handle_dllm_inference

DEVICES = {"cuda": "cuda", "hip": "cuda", "cpu": "cpu", "npu": "npu", "xpu": "xpu"}
"""PyTorch's names of each platform's devices."""


def rust_server(c: Config) -> bool:
    """Whether the Rust server replaces the Python one."""
    return c.since("0.5.17") and c.env.flag("SGLANG_RUST_SERVER")


# --- handle_return_hidden_states_mode ---------------------------------------------------------------------------------

handle_return_hidden_states_mode = Handler("serving_hook.py:handle_return_hidden_states_mode", since="0.5.17")


@handle_return_hidden_states_mode.adjusts("return_hidden_states_mode", "enable_return_hidden_states")
def pair_hidden_states_flags(c: Config) -> None:
    """Returning hidden states and how many of them are returned go together."""
    if c.return_hidden_states_mode is not None:
        c.set(enable_return_hidden_states=True)
    elif c.enable_return_hidden_states or (c.since("0.5.23") and c.enable_return_aux_hidden_states):
        c.set(return_hidden_states_mode="full")


# --- handle_media_url_security ----------------------------------------------------------------------------------------

handle_media_url_security = Handler("serving_hook.py:handle_media_url_security", since="0.5.18")


@handle_media_url_security.refuses(
    "SPC700", "negative-media-size-limit", raises="ValueError", sglang="utils/common.py:configure_media_url_security",
    bad="--media-url-max-file-size-mb -1", good="--media-url-max-file-size-mb 64",
)  # fmt: skip
def negative_media_size_limit(c: Config) -> Refusal | None:
    """The size limit of media files cannot be negative.

    `--media-url-max-file-size-mb` bounds what is downloaded for a request, in MiB.
    """
    if c.media_url_max_file_size_mb < 0:
        return Refusal(
            at="media_url_max_file_size_mb",
            message=f"{c.shown('media_url_max_file_size_mb')} is not a size: it must be 0 or more MiB.",
        )
    return None


def _media_domain_conflict(typed: str) -> str | None:
    """Why SGLang cannot read a host name (utils/common.py, _normalize_media_domain); None when it can."""
    domain = typed.strip().rstrip(".")
    if not domain:
        return "it is empty"
    if any(sign in domain for sign in "/?#@"):
        return "a host name stands there, without scheme, path or user"
    try:
        ip_address(domain[1:-1] if domain.startswith("[") and domain.endswith("]") else domain)
    except ValueError:
        if ":" in domain:
            return "a host name stands there, without a port"
        try:
            domain.encode("idna")
        except UnicodeError:
            return "it is not a host name"
    return None


@handle_media_url_security.refuses(
    "SPC709", "unreadable-media-domain", raises="ValueError", sglang="utils/common.py:_normalize_media_domain",
    bad=("--allowed-media-domains https://example.com", "--allowed-media-domains example.com:8080"),
    good="--allowed-media-domains example.com cdn.example.com 10.0.0.1",
)  # fmt: skip
def unreadable_media_domain(c: Config) -> Refusal | None:
    """An allowed media domain must be a bare host name.

    `--allowed-media-domains` names the hosts that images, videos and audio of requests may be fetched from: host names or IP
    addresses, without scheme, port, path or user.
    """
    for domain in c.allowed_media_domains or ():
        why = _media_domain_conflict(str(domain))
        if why is not None:
            return Refusal(
                at="allowed_media_domains",
                message=f"`{domain}` cannot be an allowed media domain: {why}.",
            )
    return None


@handle_media_url_security.adjusts("allowed_media_domains")
def normalize_media_domains(c: Config) -> None:
    """The allowed media domains are kept as a sorted list."""
    if c.allowed_media_domains:
        raise NotKnown("media domains", "SGLang normalizes them")
    c.set(allowed_media_domains=[])


# --- handle_watermark_config ------------------------------------------------------------------------------------------

handle_watermark_config = Handler("serving_hook.py:handle_watermark_config", since="0.5.22")

WATERMARK_FIELDS = (
    "key", "key_b", "context_window", "mixing_probability", "max_probability", "default_enabled", "enforce_all",
)  # fmt: skip


def watermark_settings(c: Config) -> Any:
    """What an inline `--watermark-config` holds. Raises NotKnown when it names a file, ValueError when it is not JSON."""
    text = str(c.watermark_config)
    if not text.lstrip().startswith("{"):
        raise NotKnown("the watermark", "its configuration is in a file")
    return json.loads(text)


def is_watermark_key(value: Any) -> bool:
    """Whether it is a text of 1 to 16 hexadecimal digits, with or without 0x."""
    if not isinstance(value, str):
        return False
    digits = value[2:] if value.lower().startswith("0x") else value
    return 1 <= len(digits) <= 16 and all(d in "0123456789abcdefABCDEF" for d in digits)


def _watermark_problem(settings: Mapping[str, Any]) -> str | None:
    """What is wrong with a watermark's settings, in SGLang's order."""
    if unknown := sorted(set(settings) - set(WATERMARK_FIELDS)):
        return f"`{unknown[0]}` is not one of its keys"
    values = {name: value for name, value in settings.items() if value is not None}
    if any(not is_watermark_key(values[name]) for name in ("key", "key_b") if name in values):
        return "a key is a text of 1 to 16 hexadecimal digits"
    window = values.get("context_window", 1)
    if type(window) is not int or not 1 <= window <= 64:
        return "`context_window` is a whole number from 1 to 64"
    for name in ("mixing_probability", "max_probability"):
        if type(values.get(name, 1.0)) not in (int, float):
            return f"`{name}` is a number"
    for name in ("default_enabled", "enforce_all"):
        if not isinstance(values.get(name, True), bool):
            return f"`{name}` is true or false"
    return None


@handle_watermark_config.refuses(
    "SPC721", "unreadable-watermark", raises="WatermarkConfigError", sglang="sampling/watermarking/config.py:load_watermark_config",
    bad=(
        """--enable-watermark --watermark-config '{"key": "0xab", "window": 4}'""",
        """--enable-watermark --watermark-config '{"key": 171}'""",
        """--enable-watermark --watermark-config '{"context_window": 128}'""",
        """--enable-watermark --watermark-config '{key: 0xab}'""",
    ),
    good="""--enable-watermark --watermark-config '{"key": "0xab", "context_window": 4}'""",
)  # fmt: skip
def unreadable_watermark(c: Config) -> Refusal | None:
    """The watermark's configuration cannot be read.

    `--watermark-config` is a file or an inline JSON object of at most 4096 bytes with `key` and `key_b` (hexadecimal texts),
    `context_window` (1 to 64), `mixing_probability`, `max_probability`, `default_enabled` and `enforce_all`. Inline ones are
    checked here.
    """
    if c.watermark_config is None:
        return None
    try:
        settings = watermark_settings(c)
    except ValueError:
        why: str | None = "it is not JSON"
    else:
        too_long = len(str(c.watermark_config).encode()) > 4096
        why = "it is longer than 4096 bytes" if too_long else _watermark_problem(settings)
    if why is None:
        return None
    return Refusal(
        at="watermark_config",
        message=f"`{c.flag('watermark_config')}` cannot be read: {why}.",
    )


# --- handle_multimodal ------------------------------------------------------------------------------------------------

handle_multimodal = Handler("serving_hook.py:handle_multimodal", since="0.5.11")


@handle_multimodal.refuses(
    "SPC701", "negative-preprocess-cache", raises="ValueError", since="0.5.18",
    bad="--mm-preprocess-cache-size-mb -1", good="--mm-preprocess-cache-size-mb 256",
)  # fmt: skip
def negative_preprocess_cache(c: Config) -> Refusal | None:
    """The cache of preprocessed media cannot have a negative size.

    `--mm-preprocess-cache-size-mb` is in MiB; 0 switches it off.
    """
    if c.mm_preprocess_cache_size_mb is not None and c.mm_preprocess_cache_size_mb < 0:
        return Refusal(
            at="mm_preprocess_cache_size_mb",
            message=f"{c.shown('mm_preprocess_cache_size_mb')} is not a size: it must be 0 or more MiB.",
            fixes=(dropping("mm_preprocess_cache_size_mb"), setting(mm_preprocess_cache_size_mb=0)),
        )
    return None


@handle_multimodal.refuses(
    "SPC702", "media-processing-settings-of-wrong-kind", raises="TypeError",
    bad="""--mm-process-config '{"image": 1}'""", good="""--mm-process-config '{"image": {"max_pixels": 1048576}}'""",
)  # fmt: skip
def media_processing_settings_of_wrong_kind(c: Config) -> Refusal | None:
    """The settings of media processing must be a JSON object of objects.

    `--mm-process-config` is JSON with an object for each of `image`, `video` and `audio`.
    """
    config = c.mm_process_config
    if config is None or (
        isinstance(config, dict) and all(isinstance(config.get(kind, {}), dict) for kind in ("image", "video", "audio"))
    ):
        return None
    return Refusal(
        at="mm_process_config",
        message=f"{c.shown('mm_process_config')} does not hold an object for each kind of media, so SGLang cannot read "
        "it. Write "
        """`{"image": {…}}`.""",
    )


# --- handle_ssl_validation --------------------------------------------------------------------------------------------

handle_ssl_validation = Handler("serving_hook.py:handle_ssl_validation", since="0.5.10")


@handle_ssl_validation.refuses(
    "SPC703", "half-a-certificate", raises="ValueError",
    bad=("--ssl-keyfile key.pem", "--ssl-certfile cert.pem"), good="--ssl-keyfile key.pem --ssl-certfile cert.pem",
)  # fmt: skip
def half_a_certificate(c: Config) -> Refusal | None:
    """TLS needs the certificate and its key.

    `--ssl-certfile` and `--ssl-keyfile` are the two halves of one identity; with one of them the server cannot encrypt.
    """
    if bool(c.ssl_keyfile) == bool(c.ssl_certfile):
        return None
    field, other = ("ssl_keyfile", "ssl_certfile") if c.ssl_keyfile else ("ssl_certfile", "ssl_keyfile")
    return Refusal(
        at=field,
        related_fields=(other,),
        message=f"{c.shown(field)} is one half of a TLS identity: SGLang also needs `{c.flag(other)}`. Add it or "
        "leave TLS out.",
    )


@handle_ssl_validation.refuses(
    "SPC704",
    "tls-setting-without-certificate",
    raises="ValueError",
    bad=("--ssl-ca-certs ca.pem", "--enable-ssl-refresh"),
    good="--ssl-keyfile key.pem --ssl-certfile cert.pem --ssl-ca-certs ca.pem",
)
def tls_setting_without_certificate(c: Config) -> Refusal | None:
    """This TLS setting does nothing without a certificate.

    `--ssl-ca-certs`, `--ssl-keyfile-password` and `--enable-ssl-refresh` refine TLS, which `--ssl-certfile` and
    `--ssl-keyfile` switch on.
    """
    if c.ssl_certfile or c.ssl_keyfile:
        return None
    for field in ("ssl_ca_certs", "ssl_keyfile_password", "enable_ssl_refresh"):
        if getattr(c, field):
            return Refusal(
                at=field,
                related_fields=("ssl_certfile", "ssl_keyfile"),
                message=f"{c.shown(field)} does nothing without `--ssl-certfile` and `--ssl-keyfile`, and SGLang "
                "refuses it. Add them or remove it.",
            )
    return None


@handle_ssl_validation.refuses(
    "SPC705", "port-sharing-without-workers", raises="ValueError", since="0.5.22",
    bad="--enable-http-worker-reuseport", good="--enable-http-worker-reuseport --tokenizer-worker-num 4",
)  # fmt: skip
def port_sharing_without_workers(c: Config) -> Refusal | None:
    """Workers can share a port only when there are several.

    `--enable-http-worker-reuseport` lets each of `--tokenizer-worker-num` HTTP workers listen on the port itself.
    HTTP/2 has its own workers.
    """
    if c.enable_http_worker_reuseport and (c.tokenizer_worker_num == 1 or c.enable_http2):
        other = "enable_http2" if c.enable_http2 else "tokenizer_worker_num"
        return Refusal(
            at="enable_http_worker_reuseport",
            related_fields=(other,),
            message=f"{c.shown('enable_http_worker_reuseport')} has no effect with {c.shown(other)}, and SGLang "
            "refuses it. Remove it.",
            fixes=(dropping("enable_http_worker_reuseport"), setting(tokenizer_worker_num=4)),
        )
    return None


@handle_ssl_validation.refuses(
    "SPC706", "http2-limit-out-of-range", raises="ValueError", since="0.5.18",
    bad="--enable-http2 --http2-max-concurrent-streams 0", good="--tp-size 1",
)  # fmt: skip
def http2_limit_out_of_range(c: Config) -> Refusal | None:
    """This HTTP/2 limit is outside what the protocol allows.

    Streams are counted in 32 bits and start at 1; a connection's window holds 1024 bytes to 2 GiB.
    """
    if not c.enable_http2:
        return None
    if not 0 < c.http2_max_concurrent_streams < 2**32:
        field, limits = "http2_max_concurrent_streams", "1 and 4294967295"
    elif c.since("0.5.20") and not 1024 <= c.http2_initial_connection_window_size < 2**31:
        field, limits = "http2_initial_connection_window_size", "1024 and 2147483647"
    else:
        return None
    return Refusal(
        at=field,
        related_fields=("enable_http2",),
        message=f"{c.shown(field)} is outside what HTTP/2 allows: between {limits}.",
    )


@handle_ssl_validation.refuses(
    "SPC707",
    "http2-with-certificate-refresh",
    raises="ValueError",
    since="0.5.11",
    bad="--enable-http2 --enable-ssl-refresh --ssl-keyfile key.pem --ssl-certfile cert.pem",
    good="--tp-size 1",
)
def http2_with_certificate_refresh(c: Config) -> Refusal | None:
    """The HTTP/2 server does not reload certificates or (before 0.5.14) share work among workers.

    `--enable-http2` runs Granian instead of Uvicorn. Rotate certificates outside, or stay with HTTP/1.1.
    """
    if not c.enable_http2:
        return None
    if c.enable_ssl_refresh and c.ssl_certfile and c.ssl_keyfile:
        other = "enable_ssl_refresh"
    elif c.before("0.5.14") and c.tokenizer_worker_num > 1:
        other = "tokenizer_worker_num"
    else:
        return None
    return Refusal(
        at=other,
        related_fields=("enable_http2",),
        message=f"{c.shown(other)} does not work with {c.shown('enable_http2')}, whose server cannot do that. Remove "
        "one of the two.",
        fixes=(dropping(other), dropping("enable_http2")),
    )


# --- handle_asr_validation --------------------------------------------------------------------------------------------

handle_asr_validation = Handler("serving_hook.py:handle_asr_validation", since="0.5.13")


@handle_asr_validation.refuses(
    "SPC708",
    "speech-limit-not-positive",
    raises="ValueError",
    bad="--asr-max-buffer-seconds 0",
    good="--asr-max-buffer-seconds 30",
)
def speech_limit_not_positive(c: Config) -> Refusal | None:
    """The limits of speech recognition must be above 0.

    `--asr-max-buffer-seconds` bounds the audio of a session, `--asr-max-concurrent-sessions` the number of sessions.
    """
    for field in ("asr_max_buffer_seconds", "asr_max_concurrent_sessions"):
        if getattr(c, field) <= 0:
            return Refusal(
                at=field,
                message=f"{c.shown(field)} leaves no room for speech: it must be more than 0.",
            )
    return None


# --- handle_deprecated_args -------------------------------------------------------------------------------------------

handle_deprecated_args = Handler("serving_hook.py:handle_deprecated_args")

TOOL_CALL_PARSERS = {"qwen25": "qwen", "glm45": "glm"}
BACKEND_FIELDS = (
    "attention_backend",
    "decode_attention_backend",
    "prefill_attention_backend",
    "speculative_draft_attention_backend",
)


@handle_deprecated_args.refuses(
    "SPC710",
    "two-image-processors",
    raises="ValueError",
    since="0.5.18",
    bad="--disable-fast-image-processor --image-processor-backend torchvision",
    good="--image-processor-backend torchvision",
)
def two_image_processors(c: Config) -> Refusal | None:
    """Two flags ask for different image processors.

    `--disable-fast-image-processor` is the old spelling of `--image-processor-backend pil`.
    """
    if c.disable_fast_image_processor and c.image_processor_backend not in ("auto", "pil"):
        return Refusal(
            at="disable_fast_image_processor",
            related_fields=("image_processor_backend",),
            message=f"{c.shown('disable_fast_image_processor')} means `--image-processor-backend pil` and contradicts "
            f"{c.shown('image_processor_backend')}. Keep one.",
            fixes=(dropping("disable_fast_image_processor"), dropping("image_processor_backend")),
        )
    return None


@handle_deprecated_args.adjusts("image_processor_backend", MOVED, since="0.5.18", spelling=True)
def read_slow_image_processor(c: Config) -> None:
    """`--disable-fast-image-processor` is the old spelling of `--image-processor-backend pil`."""
    if c.disable_fast_image_processor:
        c.move("image_processor_backend", "disable_fast_image_processor", value="pil")


@handle_deprecated_args.adjusts("tool_call_parser", spelling=True)
def rename_tool_call_parser(c: Config) -> None:
    """The tool call parser is known by a shorter name."""
    if c.tool_call_parser in TOOL_CALL_PARSERS:
        c.set(tool_call_parser=TOOL_CALL_PARSERS[c.tool_call_parser])


@handle_deprecated_args.adjusts(
    "flashinfer_allreduce_fusion_backend", "enable_flashinfer_allreduce_fusion", MOVED, since="0.5.14", spelling=True
)
def read_allreduce_fusion(c: Config) -> None:
    """`--enable-flashinfer-allreduce-fusion` is the old spelling of `--flashinfer-allreduce-fusion-backend auto`."""
    if c.enable_flashinfer_allreduce_fusion and c.flashinfer_allreduce_fusion_backend is None:
        c.move("flashinfer_allreduce_fusion_backend", "enable_flashinfer_allreduce_fusion", value="auto")
    c.set(enable_flashinfer_allreduce_fusion=False)


@handle_deprecated_args.adjusts(*BACKEND_FIELDS, since="0.5.12", spelling=True)
def rename_attention_backends(c: Config) -> None:
    """The attention backend is known by a newer name."""
    names = {"compressed": "dsv4", **({"tokenspeed_mla": "cutedsl_mla"} if c.since("0.5.23") else {})}
    renamed = {field: names[getattr(c, field)] for field in BACKEND_FIELDS if getattr(c, field) in names}
    if renamed.get("prefill_attention_backend") == "cutedsl_mla":
        renamed["prefill_attention_backend"] = "trtllm_mla"
    c.set(**renamed)


def _was_tokenspeed(c: Config) -> bool:
    return "tokenspeed_mla" in (c.typed("attention_backend"), c.typed("decode_attention_backend"))


@handle_deprecated_args.adjusts("kv_cache_dtype", since="0.5.23")
def keep_tokenspeed_cache_type(c: Config) -> None:
    """`tokenspeed_mla` always meant an FP8 KV cache."""
    if _was_tokenspeed(c):
        c.set(kv_cache_dtype="fp8_e4m3")


@handle_deprecated_args.adjusts("speculative_attention_mode", since="0.5.23")
def keep_tokenspeed_verification(c: Config) -> None:
    """`tokenspeed_mla` always verified draft tokens with its decode kernel."""
    if _was_tokenspeed(c) and c.speculative_algorithm is not None and c.speculative_attention_mode == "prefill":
        c.set(speculative_attention_mode="decode")


@handle_deprecated_args.adjusts("smg_grpc_mode", MOVED, since="0.5.16", spelling=True)
def read_grpc_mode(c: Config) -> None:
    """`--grpc-mode` is the old spelling of `--smg-grpc-mode`."""
    if c.grpc_mode and not c.smg_grpc_mode:
        c.move("smg_grpc_mode", "grpc_mode", value=True)


def _legacy_grpc(c: Config) -> bool:
    return bool(c.smg_grpc_mode or c.grpc_mode)


@handle_deprecated_args.adjusts("grpc_port", since="0.5.16")
def choose_grpc_port(c: Config) -> None:
    """The gRPC port comes from SGLANG_GRPC_PORT, or is 10000 above the port for the older gRPC server."""
    if c.grpc_port is None and (port := _number(c, "SGLANG_GRPC_PORT")) is not None:
        c.set(grpc_port=port)
    if c.grpc_port is None and _legacy_grpc(c):
        c.set(grpc_port=c.port + 10000)


def _number(c: Config, variable: str) -> int | None:
    text = c.env.text(variable)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


@handle_deprecated_args.refuses(
    "SPC711", "grpc-timeout-not-positive", raises="ValueError", since="0.5.21",
    bad="--grpc-response-timeout-secs 0", good="--grpc-response-timeout-secs 60",
)  # fmt: skip
def grpc_timeout_not_positive(c: Config) -> Refusal | None:
    """The timeout of a gRPC answer must be above 0.

    `--grpc-response-timeout-secs` is how long the gRPC server waits for the next piece of an answer, in seconds.
    """
    if c.grpc_response_timeout_secs <= 0:
        return Refusal(
            at="grpc_response_timeout_secs",
            message=f"{c.shown('grpc_response_timeout_secs')} leaves no time to answer: it must be more than 0 "
            "seconds.",
        )
    return None


@handle_deprecated_args.refuses(
    "SPC712", "grpc-port-out-of-range", raises="ValueError", since="0.5.11",
    bad=("--grpc-port 70000", "--smg-grpc-mode --port 60000"), good="--grpc-port 40000",
)  # fmt: skip
def grpc_port_out_of_range(c: Config) -> Refusal | None:
    """The gRPC port is outside 1 to 65535.

    The older gRPC server listens on `--port` plus 10000 unless `--grpc-port` (or SGLANG_GRPC_PORT) says otherwise, which a
    high port pushes out of range. Releases 0.5.11 to 0.5.15 add the 10000 even when gRPC is not used.
    """
    port = c.grpc_port if c.since("0.5.16") else (_number(c, "SGLANG_GRPC_PORT") or c.port + 10000)
    if port is None or 1 <= port <= 65535:
        return None
    derived = not c.given("grpc_port") and not c.env.is_set("SGLANG_GRPC_PORT")
    at = "port" if derived else c.first_given("grpc_port", "SGLANG_GRPC_PORT")
    label = c.shown(at) if not at.isupper() else f"`{at}`"
    reason = f"makes the gRPC port {port}, which is" if derived else "is"
    return Refusal(
        at=at,
        related_fields=("smg_grpc_mode",),
        message=f"{label} {reason} no TCP port: ports go from 1 to 65535. Choose another.",
        fixes=(setting(port=30000), setting(grpc_port=40000)) if derived else (dropping("grpc_port"),),
    )


@handle_deprecated_args.refuses(
    "SPC713", "no-grpc-threads", raises="ValueError", since="0.5.16",
    bad="SGLANG_GRPC_WORKER_THREADS=0 -- --grpc-port 40000", good="--grpc-port 40000",
)  # fmt: skip
def no_grpc_threads(c: Config) -> Refusal | None:
    """The gRPC server needs at least one thread.

    SGLANG_GRPC_WORKER_THREADS is the number of threads of the native gRPC server (4 unless set).
    """
    threads = _number(c, "SGLANG_GRPC_WORKER_THREADS")
    if c.grpc_port is not None and threads is not None and threads < 1:
        return Refusal(
            at="SGLANG_GRPC_WORKER_THREADS",
            related_fields=("grpc_port",),
            message=f"`SGLANG_GRPC_WORKER_THREADS={threads}` leaves the gRPC server without threads. Unset it.",
            fixes=(dropping_env("SGLANG_GRPC_WORKER_THREADS"),),
        )
    return None


def _sidecar_conflict(c: Config) -> tuple[str, str, Change] | None:
    arguments = c.sidecar_args
    if arguments is not None and c.sidecar is None:
        return "sidecar_args", "there is no `--sidecar` to pass them to", dropping("sidecar_args")
    if arguments is not None and not (isinstance(arguments, list) and all(isinstance(a, str) for a in arguments)):
        return "sidecar_args", "they are a JSON array of strings", dropping("sidecar_args")
    if c.sidecar is None:
        return None
    if not c.sidecar.strip():
        return "sidecar", "it names no program", dropping("sidecar")
    if _legacy_grpc(c):
        return (
            "sidecar",
            "it talks to the native gRPC server, not to the older one",
            dropping("smg_grpc_mode", "grpc_mode"),
        )
    if c.grpc_port is None:
        return "sidecar", "it talks to the native gRPC server, which `--grpc-port` starts", setting(grpc_port=40000)
    return None


@handle_deprecated_args.refuses(
    "SPC714", "sidecar-without-its-server", raises="ValueError", since="0.5.16",
    bad="--sidecar gateway", good="--sidecar gateway --grpc-port 40000",
)  # fmt: skip
def sidecar_without_its_server(c: Config) -> Refusal | None:
    """A sidecar needs SGLang's native gRPC server.

    `--sidecar` starts a program beside the server that talks to it over `--grpc-port`; `--sidecar-args` are its
    arguments, as a JSON array.
    """
    conflict = _sidecar_conflict(c)
    if conflict is None:
        return None
    field, why, change = conflict
    return Refusal(
        at=field,
        related_fields=("grpc_port", "smg_grpc_mode"),
        message=f"{c.shown(field)} cannot be used: {why}.",
        fixes=(change, dropping("sidecar", "sidecar_args")),
    )


@handle_deprecated_args.refuses(
    "SPC715", "native-grpc-server-beside-what-it-lacks", raises="ValueError", since="0.5.16",
    bad="--grpc-port 40000 --api-key secret", good="--grpc-port 40000",
)  # fmt: skip
def native_grpc_server_beside_what_it_lacks(c: Config) -> Refusal | None:
    """The native gRPC server cannot be combined with this setting.

    It is not started by Ray or by an encoder server, has no part in several tokenizer workers, and does not check API
    keys, so SGLang refuses to open it beside them.
    """
    if c.grpc_port is None or _legacy_grpc(c):
        return None
    for field, wrong, why in (
        ("use_ray", c.use_ray, "Ray does not start it"),
        ("encoder_only", c.encoder_only, "an encoder server is another server"),
        ("tokenizer_worker_num", c.tokenizer_worker_num > 1, "it works with one tokenizer worker"),
        ("api_key", c.api_key, "it does not check API keys"),
        ("admin_api_key", c.admin_api_key, "it does not check API keys"),
    ):
        if wrong:
            at = c.first_given("grpc_port", "SGLANG_GRPC_PORT")
            label = c.shown("grpc_port") if c.given("grpc_port") else f"`{at}`"
            shown = f"`{c.flag(field)}`" if field.endswith("api_key") else c.shown(field)
            return Refusal(
                at=at,
                related_fields=(field,),
                message=f"{label} opens the native gRPC server, which cannot be combined with {shown}: {why}. Remove one of "
                "the two.",
                fixes=(dropping("grpc_port") if at == "grpc_port" else dropping_env(at), dropping(field)),
            )
    return None


# --- handle_prefill_delayer_env_compat --------------------------------------------------------------------------------

handle_prefill_delayer_env_compat = Handler("serving_hook.py:handle_prefill_delayer_env_compat", since="0.5.8")


@handle_prefill_delayer_env_compat.adjusts(
    "enable_prefill_delayer",
    "prefill_delayer_max_delay_passes",
    "prefill_delayer_token_usage_low_watermark",
    spelling=True,
)
def read_prefill_delayer_variables(c: Config) -> None:
    """Environment variables of older releases set the prefill delayer."""
    if c.env.flag("SGLANG_SCHEDULER_DECREASE_PREFILL_IDLE"):
        c.set(enable_prefill_delayer=True)
    if passes := _number(c, "SGLANG_PREFILL_DELAYER_MAX_DELAY_PASSES"):
        c.set(prefill_delayer_max_delay_passes=passes)
    if watermark := c.env.number("SGLANG_PREFILL_DELAYER_TOKEN_USAGE_LOW_WATERMARK", 0.0):
        c.set(prefill_delayer_token_usage_low_watermark=float(watermark))


# --- handle_missing_default_values ------------------------------------------------------------------------------------

handle_missing_default_values = Handler("serving_hook.py:handle_missing_default_values")


@handle_missing_default_values.adjusts("tokenizer_path")
def take_tokenizer_of_model(c: Config) -> None:
    """The tokenizer is the model's own unless another is named."""
    if c.tokenizer_path is None:
        c.set(tokenizer_path=c.model_path)


@handle_missing_default_values.adjusts("served_model_name")
def serve_model_under_its_path(c: Config) -> None:
    """The model is served under its path unless another name is given."""
    if c.served_model_name is None:
        c.set(served_model_name=c.model_path)


@handle_missing_default_values.adjusts("device")
def find_device(c: Config) -> None:
    """The device is the one SGLang finds; a device index is dropped."""
    if c.device is None:
        c.set(device=DEVICES[c.gpu.platform])
    elif c.since("0.5.11"):
        c.set(device=c.device.split(":")[0])


@handle_missing_default_values.adjusts("random_seed")
def draw_seed(c: Config) -> None:
    """The random seed is drawn anew at every start."""
    if c.random_seed is None:
        raise NotKnown("the random seed", "it is drawn at the start")


@handle_missing_default_values.adjusts("mm_process_config")
def process_media_by_default(c: Config) -> None:
    """Media are processed by the model's own settings."""
    if c.mm_process_config is None:
        c.set(mm_process_config={})


@handle_missing_default_values.adjusts("mamba_scheduler_strategy", since="0.5.7", until="0.5.14")
def schedule_mamba_by_default(c: Config) -> None:
    """Mamba layers keep no extra buffer unless told so."""
    if c.mamba_scheduler_strategy == "auto":
        c.set(mamba_scheduler_strategy="no_buffer")


@handle_missing_default_values.adjusts("speculative_draft_model_quantization", since="0.5.7")
def quantize_draft_like_target(c: Config) -> None:
    """The draft model is quantized like the target unless told otherwise."""
    if c.speculative_draft_model_quantization is None:
        c.set(speculative_draft_model_quantization=c.quantization)


@handle_missing_default_values.adjusts("quantization", since="0.5.15", spelling=True)
def read_unquant(c: Config) -> None:
    """`--quantization unquant` means: load the weights as they are, whatever the checkpoint says."""
    if c.quantization == "unquant":
        c.set(quantization=None)


@handle_missing_default_values.adjusts("speculative_draft_model_quantization", since="0.5.7", spelling=True)
def read_draft_unquant(c: Config) -> None:
    """`--speculative-draft-model-quantization unquant` means: load the draft's weights as they are."""
    inherited = c.before("0.5.15") and not c.given("speculative_draft_model_quantization")
    if c.speculative_draft_model_quantization == "unquant" and not inherited:
        c.set(speculative_draft_model_quantization=None)


# --- handle_load_balance_method ---------------------------------------------------------------------------------------

handle_load_balance_method = Handler("serving_hook.py:handle_load_balance_method", since="0.5.8")


@handle_load_balance_method.adjusts("load_balance_method")
def choose_load_balancing(c: Config) -> None:
    """Prefill servers balance by the room a request belongs to, others round robin."""
    prefill = c.disaggregation_mode == "prefill"
    if c.load_balance_method == "auto":
        c.set(load_balance_method="follow_bootstrap_room" if prefill else "round_robin")
    elif c.before("0.5.10") and prefill and c.load_balance_method == "round_robin":
        c.set(load_balance_method="follow_bootstrap_room")


# --- handle_grammar_backend -------------------------------------------------------------------------------------------

handle_grammar_backend = Handler("serving_hook.py:handle_grammar_backend")


@handle_grammar_backend.adjusts("grammar_backend")
def choose_grammar_backend(c: Config) -> None:
    """Grammars are compiled by XGrammar unless another backend is named."""
    if c.grammar_backend is None:
        c.set(grammar_backend="xgrammar")


# --- handle_debug_utils -----------------------------------------------------------------------------------------------

handle_debug_utils = Handler("serving_hook.py:handle_debug_utils", since="0.5.7")


@handle_debug_utils.adjusts("soft_watchdog_timeout")
def watch_ci_runs(c: Config) -> None:
    """SGLang's own test runs get a watchdog of 300 seconds."""
    if c.soft_watchdog_timeout is None and c.env.flag("SGLANG_IS_IN_CI"):
        c.set(soft_watchdog_timeout=300)


# --- handle_tokenizer_batching ----------------------------------------------------------------------------------------

handle_tokenizer_batching = Handler("serving_hook.py:handle_tokenizer_batching")


@handle_tokenizer_batching.refuses(
    "SPC716", "two-ways-of-batching-tokenization", raises="ValueError",
    bad="--enable-tokenizer-batch-encode --enable-dynamic-batch-tokenizer", good="--enable-dynamic-batch-tokenizer",
)  # fmt: skip
def two_ways_of_batching_tokenization(c: Config) -> Refusal | None:
    """Two flags ask for different ways of tokenizing in batches.

    `--enable-tokenizer-batch-encode` tokenizes the prompts of one request together, `--enable-dynamic-batch-tokenizer`
    those of requests that arrive together. Choose one.
    """
    if c.enable_tokenizer_batch_encode and c.enable_dynamic_batch_tokenizer:
        return Refusal(
            at="enable_tokenizer_batch_encode",
            related_fields=("enable_dynamic_batch_tokenizer",),
            message=f"{c.shown('enable_tokenizer_batch_encode')} and {c.shown('enable_dynamic_batch_tokenizer')} are "
            "two ways of batching the same work. Keep one.",
            fixes=(dropping("enable_tokenizer_batch_encode"), dropping("enable_dynamic_batch_tokenizer")),
        )
    return None


@handle_tokenizer_batching.adjusts(
    "tokenizer_worker_num", "detokenizer_worker_num", "enable_tokenizer_batch_encode", "enable_dynamic_batch_tokenizer"
)
def skip_tokenizer_work(c: Config) -> None:
    """Without a tokenizer there is no work for several tokenizer or detokenizer processes."""
    if not c.skip_tokenizer_init or rust_server(c) or c.before("0.5.4"):
        return
    if c.before("0.5.16"):
        c.set(tokenizer_worker_num=1)
    if c.since("0.5.12"):
        c.set(detokenizer_worker_num=1)
    c.set(enable_tokenizer_batch_encode=False, enable_dynamic_batch_tokenizer=False)


# --- handle_environment_variables -------------------------------------------------------------------------------------

handle_environment_variables = Handler("serving_hook.py:handle_environment_variables")

_TRANSPORT = "serving_hook.py:handle_multimodal_feature_transport"


@handle_environment_variables.refuses(
    "SPC717",
    "media-features-in-two-places",
    raises="ValueError",
    since="0.5.16",
    until="0.5.20",
    sglang=_TRANSPORT,
    bad="sglang=0.5.19 -- --keep-mm-feature-on-device --mm-feature-transport cpu",
    good="sglang=0.5.19 -- --mm-feature-transport cpu",
)
def media_features_in_two_places(c: Config) -> Refusal | None:
    """Media features cannot stay on the GPU and travel another way.

    `--keep-mm-feature-on-device` is the old spelling of `--mm-feature-transport cuda_ipc`.
    """
    wrong = ("cpu",) if c.before("0.5.18") else ("cpu", "cuda_vmm")
    if c.keep_mm_feature_on_device and c.mm_feature_transport in wrong:
        return Refusal(
            at="keep_mm_feature_on_device",
            related_fields=("mm_feature_transport",),
            message=f"{c.shown('keep_mm_feature_on_device')} means `--mm-feature-transport cuda_ipc` and contradicts "
            f"{c.shown('mm_feature_transport')}. Keep one.",
            fixes=(dropping("keep_mm_feature_on_device"), dropping("mm_feature_transport")),
        )
    return None


def _requested_transport(c: Config) -> str:
    """How media features are sent to the GPU, before the platform's limits apply."""
    if c.keep_mm_feature_on_device:
        return "cuda_ipc"
    if c.mm_feature_transport is not None:
        return str(c.mm_feature_transport)
    if c.env.is_set("SGLANG_USE_CUDA_IPC_TRANSPORT"):
        return "cuda_ipc" if c.env.flag("SGLANG_USE_CUDA_IPC_TRANSPORT") else "cpu"
    alone = c.disaggregation_mode == "null"
    if c.since("0.5.17") and c.before("0.5.18") and not c.encoder_only and alone and c.nnodes == 1 and c.gpu.is_cuda:
        return "cuda_ipc"
    if c.since("0.5.18") and c.nnodes > 1 and alone and not c.encoder_only and c.gpu.is_cuda and "GB" in c.gpu.title:
        raise NotKnown("multi-node NVLink", "SGLang looks for it on the machine")
    return "cpu"


@handle_environment_variables.adjusts("mm_feature_transport", "keep_mm_feature_on_device", since="0.5.16")
def choose_media_transport(c: Config) -> None:
    """Media features travel through the CPU unless the launch says otherwise."""
    transport = _requested_transport(c)
    if c.encoder_only and c.since("0.5.17") and transport in ("cuda_ipc", "cuda_vmm"):
        transport = "cpu"
    c.set(mm_feature_transport=transport)
    if c.before("0.5.20"):
        c.set(keep_mm_feature_on_device=False)


@handle_environment_variables.refuses(
    "SPC718", "media-transport-not-available", raises="ValueError", since="0.5.16", sglang=_TRANSPORT,
    bad=("gpu=mi300x -- --mm-feature-transport cuda_ipc", "--mm-feature-transport cuda_vmm --pp-size 2"),
    good="--mm-feature-transport cuda_ipc",
)  # fmt: skip
def media_transport_not_available(c: Config) -> Refusal | None:
    """Media features cannot travel this way here.

    `cuda_ipc` and `cuda_vmm` share GPU memory between processes on NVIDIA GPUs: the first within one node, the second
    without pipeline parallelism.
    """
    transport = c.mm_feature_transport
    if transport not in ("cuda_ipc", "cuda_vmm"):
        return None
    if not c.gpu.is_cuda:
        field, why = "device", f"it shares memory of NVIDIA GPUs, and this is {c.gpu.title}"
    elif transport == "cuda_vmm" and c.pp_size != 1:
        field, why = "pp_size", "pipeline stages cannot share it"
    elif transport == "cuda_vmm" and c.before("0.5.20") and rust_server(c):
        field, why = "SGLANG_RUST_SERVER", "the Rust server does not support it"
    elif transport == "cuda_ipc" and c.nnodes != 1:
        field, why = "nnodes", "it does not leave a node"
    else:
        return None
    return Refusal(
        at="mm_feature_transport",
        related_fields=(field,),
        message=f"{c.shown('mm_feature_transport')} cannot be used: {why}. Use `cpu`.",
        fixes=(setting(mm_feature_transport="cpu"), dropping("mm_feature_transport")),
    )


@handle_environment_variables.adjusts("debug_cuda_graph", since="0.5.11")
def debug_graphs_on_gpus_only(c: Config) -> None:
    """CUDA graphs can be debugged on NVIDIA and AMD GPUs only."""
    if c.debug_cuda_graph and not (c.gpu.is_cuda or (c.gpu.is_hip and c.since("0.5.14"))):
        c.set(debug_cuda_graph=False)


@handle_environment_variables.refuses(
    "SPC719", "fp4-indexer-on-unfit-gpu", raises="ValueError", since="0.5.13", hardware_only=True,
    bad="gpu=h100 -- --enable-deepseek-v4-fp4-indexer", good="gpu=b200 -- --enable-deepseek-v4-fp4-indexer",
)  # fmt: skip
def fp4_indexer_on_unfit_gpu(c: Config) -> Refusal | None:
    """DeepSeek-V4's FP4 indexer needs FP4 tensor cores.

    SM100 GPUs have them, in newer releases also SM120 and MI350; elsewhere the indexer runs in FP8.
    """
    if not c.enable_deepseek_v4_fp4_indexer or c.gpu.sm100:
        return None
    if (c.since("0.5.17") and c.gpu.sm120) or (c.since("0.5.20") and c.gpu.gfx95):
        return None
    return Refusal(
        at="enable_deepseek_v4_fp4_indexer",
        message=f"{c.shown('enable_deepseek_v4_fp4_indexer')} does not run on {c.gpu.title}, which has no FP4 kernels "
        "for it. Remove it.",
    )


# --- checks that older releases made here -----------------------------------------------------------------------------

chat_template_defaults = Handler(
    "serving_hook.py:handle_other_validations", since="0.5.16",
    earlier=(Earlier("0.5.18", "server_args.py:__post_init__"),),
)  # fmt: skip


@chat_template_defaults.refuses(
    "SPC720", "chat-template-defaults-of-wrong-kind", raises="ValueError",
    bad="--default-chat-template-kwargs '[1]'", good="""--default-chat-template-kwargs '{"enable_thinking": false}'""",
)  # fmt: skip
def chat_template_defaults_of_wrong_kind(c: Config) -> Refusal | None:
    """The default arguments of the chat template must be a JSON object.

    `--default-chat-template-kwargs` gives names and values that every chat request starts with.
    """
    if c.default_chat_template_kwargs is not None and not isinstance(c.default_chat_template_kwargs, Mapping):
        return Refusal(
            at="default_chat_template_kwargs",
            message=f"{c.shown('default_chat_template_kwargs')} is not a JSON object. Write names and values in braces.",
        )
    return None


validate_default_chat_template_kwargs = chat_template_defaults
"""Where 0.5.16 and 0.5.17 check them."""


def parsed(value: Any) -> Any:
    """A flag's value that SGLang reads as JSON when it is a text. Raises NotKnown when it is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise NotKnown("a JSON value", "it cannot be parsed") from None
