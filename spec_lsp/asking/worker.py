"""Run in the interpreter that has SGLang: its own argument resolution answers what it makes of a launch, without GPU and weights.

    python worker.py START < cases > answers

It stands alone: that interpreter has no spec-lsp. START is one JSON object:

    packages  folders to put before sys.path (an unpacked wheel of SGLang, the transformers release that it pins)
    device    {"platform": "cuda" | "hip" | "cpu", "name", "capability": [major, minor], "memory_mib"}: what is simulated
    own       whether the machine's own GPU, where there is one, is taken instead
    models    the folder that "{models}" stands for in argv ("{files}" stands for the one with the files of the case)
    jobs      how many cases are asked at once
    seconds   how long one may take
    memory    how many bytes one may take of its own
    learns    whether what one case had to import of SGLang is imported for the next ones
    folder    what is removed in the end where the process `owner`, whose it is, has gone

The first line of the answers says {"ready": …} or {"failed": kind, "why": …}. Then there is one line for each case, as they are done. A
case is {"n", "argv" or "fields", "env", "cwd", "files": {name: text}}, the answer to it {"n", "outcome", "error", "resolved", "log",
"denied"}:

    outcome   ok, argparse, refused, crashed (an error that SGLang does not mean to raise), unanswered (it cannot be asked here)
    error     {"type", "message", "where": "file:function:line"}, the file relative to sglang/srt
    resolved  the fields of ServerArgs as they end up
    denied    what SGLang was kept from doing

Each case runs in a forked child, which may start no program, reach no network, write nothing but temporary files, and run no Python but
what is installed: neither the code that comes with a model nor anything of the folder that it was started from.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import itertools
import json
import logging
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

Json = dict[str, Any]

# --- packages that are not here ----------------------------------------------------------------------------------------

KERNELS = (
    "sgl_kernel", "flashinfer", "xgrammar", "outlines", "llguidance", "interegular", "outlines_core", "gguf", "modelscope", "datasets",
    "timm", "scipy", "pynvml", "cuda", "deep_ep", "deep_gemm", "flash_attn", "quack", "tilelang", "torch_memory_saver", "openai_harmony",
    "openai", "anthropic", "mistral_common", "blobfile", "kernels", "smg_grpc_servicer", "smg_grpc_proto", "grpc", "grpc_health",
    "grpc_reflection", "numba", "apache_tvm_ffi", "tvm_ffi", "cutlass", "humming", "nvshmem", "py_spy", "sgl_flash_mla", "flash_mla",
    "watchfiles", "cv2", "matplotlib", "librosa", "tml_renderers", "deepseek_recipe", "easydict", "addict", "aiter", "mori",
    "lmcache", "mooncake", "nixl", "ray", "cpuinfo", "sgl_kernel_npu", "sgl_deep_gemm", "mathdx", "dill", "cloudpickle", "distro",
    "torchvision", "torchaudio", "torchcodec", "decord", "decord2", "av", "soundfile",
)  # fmt: skip
"""Packages that SGLang imports but argument resolution does not need: a stand-in replaces one that is missing, or cannot be loaded without
a GPU."""


class StandIn(type):
    """A class whose every attribute is another such class."""

    def __getattr__(cls, name: str) -> Any:
        if name == "__get_pydantic_core_schema__":
            from pydantic_core import core_schema

            return lambda *_: core_schema.any_schema()
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls


def stand_in(name: str) -> Any:
    def attribute(self: Any, asked: str) -> Any:
        if asked.startswith("__"):
            raise AttributeError(asked)
        return self

    def call(self: Any, *given: Any, **named: Any) -> Any:
        decorates = len(given) == 1 and callable(given[0]) and not named
        return given[0] if decorates else self

    return StandIn(
        name,
        (),
        {
            "__init__": lambda self, *_, **__: None,
            "__call__": call,
            "__getattr__": attribute,
            "__getitem__": lambda self, _: self,
            "__class_getitem__": classmethod(lambda cls, _: cls),
            "__iter__": lambda self: iter(()),
            "__int__": lambda self: 0,
            "__index__": lambda self: 0,
        },
    )


class StandInModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "9.9.9"
        if name.startswith("__"):
            raise AttributeError(name)
        value = stand_in(name)
        setattr(self, name, value)
        return value


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for the packages `roots`."""

    def __init__(self) -> None:
        self.roots: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in self.roots:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass

    def replace(self, package: str) -> None:
        """Stand in for a package that is installed but cannot be imported."""
        self.roots.add(package)
        forget(package)


def forget(package: str) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        del sys.modules[name]


def installed(package: str) -> bool:
    return importlib.machinery.PathFinder.find_spec(package) is not None


def tolerate_missing_operators() -> None:
    """Ignore registrations for operators of missing kernels, which would otherwise end the import."""
    import torch

    real_impl, real_fake = torch.library.Library.impl, torch.library.register_fake

    def impl(self: Any, *given: Any, **named: Any) -> Any:
        return quietly(lambda: real_impl(self, *given, **named), None)

    def register_fake(op: Any, func: Any = None, **named: Any) -> Any:
        if func is None:
            return lambda f: quietly(lambda: real_fake(op, f, **named), f)
        return quietly(lambda: real_fake(op, func, **named), func)

    torch.library.Library.impl = impl
    torch.library.register_fake = register_fake


def quietly(call: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return call()
    except RuntimeError:
        return otherwise


def load_torchvision() -> Any:
    """A torchvision beside a torch of another build lacks its operators, but can be imported without them.

    The returned object must be kept alive.
    """
    if not installed("torchvision"):
        return None
    try:
        importlib.import_module("torchvision")
    except Exception:
        import torch

        forget("torchvision")
        sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")
        return quietly(lambda: torch.library.Library("torchvision", "DEF"), None)
    return None


# --- the platform ------------------------------------------------------------------------------------------------------


def own_device() -> Json | None:
    """The machine's own GPU, determined in a separate child, as a process that has used CUDA cannot be forked."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(_own_device()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    device: Json | None = json.loads(text or "null")
    return device


def _own_device() -> Json | None:
    import torch

    if not torch.cuda.is_available():
        return None
    found = torch.cuda.get_device_properties(0)
    return {
        "platform": "hip" if torch.version.hip else "cuda",
        "name": found.name,
        "capability": [found.major, found.minor],
        "memory_mib": found.total_memory >> 20,
        "count": torch.cuda.device_count(),
    }


GFX = {(9, 4): "gfx942", (9, 5): "gfx950"}


def simulate(device: Json) -> None:
    """Make torch report this GPU."""
    if device["platform"] == "cpu":
        return
    import torch

    name, capability, memory = device["name"], tuple(device["capability"]), device["memory_mib"] << 20
    properties = types.SimpleNamespace(
        name=name, major=capability[0], minor=capability[1], total_memory=memory, multi_processor_count=132, warp_size=32,
        shared_memory_per_block_optin=232448, gcnArchName=GFX.get(capability, "") if device["platform"] == "hip" else "",
    )  # fmt: skip
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": device.get("count", 8),
        "current_device": 0,
        "set_device": None,
        "synchronize": None,
        "get_device_capability": capability,
        "get_device_name": name,
        "mem_get_info": (memory, memory),
        "get_arch_list": [],
        "get_device_properties": properties,
    }
    for question, answer in answers.items():
        setattr(torch.cuda, question, functools.partial(_always, answer))
    hip = device["platform"] == "hip"
    versions: Any = torch.version
    versions.cuda, versions.hip = (None, "7.0.0") if hip else (versions.cuda or "13.0", None)


def _always(answer: Any, *_: Any, **__: Any) -> Any:
    return answer


def simulate_memory(device: Json) -> None:
    """Simulate the memory that SGLang would ask the driver's programs for."""
    memory = device.get("memory_mib")
    if memory is None:
        return
    try:
        common = importlib.import_module("sglang.srt.utils.common")
    except ImportError:  # before 0.5.4
        common = importlib.import_module("sglang.srt.utils")
    answer = functools.partial(_always, memory)
    for name in ("get_nvgpu_memory_capacity", "get_amdgpu_memory_capacity"):
        if hasattr(common, name):
            setattr(common, name, answer)
    for name in ("get_device_memory_capacity", "get_nvgpu_memory_capacity"):
        function = getattr(common, name, None)
        if isinstance(function, types.FunctionType):
            function.__globals__["get_nvgpu_memory_capacity"] = answer


# --- starting ----------------------------------------------------------------------------------------------------------


class CannotAskError(Exception):
    """SGLang cannot be asked here; the kind of reason and, as the message, SGLang's or Python's own words."""

    def __init__(self, kind: str, why: str = "") -> None:
        super().__init__(why)
        self.kind = kind


def prepare(start: Json) -> Json:
    """Import SGLang on the simulated platform; what it is, for the first line of the answers. Raises CannotAskError."""
    began = time.monotonic()
    sys.path[:] = [
        *start.get("packages", ()),
        *(p for p in sys.path if p and os.path.abspath(p) != os.path.dirname(os.path.abspath(__file__))),
    ]  # neither this file's folder nor the current one
    if importlib.util.find_spec("sglang") is None:
        raise CannotAskError("missing")
    device = (own_device() if start.get("own") else None) or start["device"]
    stand_ins = import_sglang(device)
    simulate_memory(device)
    warm_up(start.get("models"))
    return {
        "version": version(),
        "device": device,
        "simulated": device is start["device"],
        "stand_ins": sorted(stand_ins),
        "seconds": round(time.monotonic() - began, 1),
    }


def import_sglang(device: Json) -> set[str]:
    """Import what resolution needs. Kernel packages that cannot be loaded without a GPU are replaced by stand-ins; returns their names."""
    try:
        import torch  # noqa: F401

        tolerate_missing_operators()
        global _KEPT
        _KEPT = load_torchvision()
        # transformers looks for packages once, and must not take stand-ins for them
        importlib.import_module("transformers.models.llama.modeling_llama")
        importlib.import_module("transformers.models.auto.processing_auto")
    except Exception as error:
        raise CannotAskError("import", told(error)) from error
    name_triton_folders()
    finder = StandInFinder()
    finder.roots.update(name for name in KERNELS if not installed(name))
    sys.meta_path.append(finder)
    simulate(device)
    while (failure := import_error("sglang.srt.server_args")) is not None:
        broken = next((p for p in passed_through(failure) if p in KERNELS and p not in finder.roots), None)
        if broken is None:
            raise CannotAskError("import", told(failure)) from failure
        finder.replace(broken)
        forget("sglang")
        sys.meta_path.remove(finder)
        sys.meta_path.insert(0, finder)
    return finder.roots


def import_error(module: str) -> Exception | None:
    try:
        importlib.import_module(module)
    except Exception as error:
        return error
    return None


_KEPT: Any = None


def name_triton_folders() -> None:
    """Releases that were written for an older Triton ask it for folders that it no longer names."""
    try:
        cache: Any = importlib.import_module("triton.runtime.cache")
    except ImportError:
        return
    for name in ("default_cache_dir", "default_dump_dir", "default_override_dir"):
        if not hasattr(cache, name):
            setattr(cache, name, lambda: os.path.join(tempfile.gettempdir(), "triton"))


def passed_through(error: BaseException) -> Iterator[str]:
    """The installed packages that an exception came through or names, the innermost first."""
    if isinstance(error, ImportError) and error.name:
        yield error.name.partition(".")[0]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        yield from (p for p in KERNELS if f"{os.sep}{p}{os.sep}" in frame.filename)


def told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({short(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:400]}{at}"


def version() -> str:
    try:
        return str(importlib.import_module("sglang.version").__version__)
    except (ImportError, AttributeError):
        return ""


LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}  # fmt: skip
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "vocab_size": 129280, "max_position_embeddings": 163840, "torch_dtype": "bfloat16", "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "n_group": 8, "topk_group": 4, "num_nextn_predict_layers": 1,
    "quantization_config": {
        "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
    },
}  # fmt: skip
WARMING = (
    (LLAMA, ("--speculative-algorithm", "EAGLE")),
    (LLAMA, ("--speculative-algorithm", "NGRAM")),
    (DEEPSEEK, ("--tp-size", "8", "--dp-size", "8", "--enable-dp-attention")),
    (DEEPSEEK, ("--tp-size", "8", "--speculative-algorithm", "EAGLE")),
)
"""Launches that import what most others need: models of two kinds, quantization, drafting."""


def warm_up(models: str | None) -> None:
    """Ask about a few launches, so that no child has to import what they all need. The answers are not used."""
    for name in ("sglang.srt.arg_groups.pipeline", "sglang.srt.configs.model_config"):
        with suppress(
            Exception
        ):  # a release without such a module, or that cannot import it: a case that needs it reports that
            importlib.import_module(name)
    environ, folder = dict(os.environ), tempfile.mkdtemp()
    try:
        for model, flags in WARMING:
            with open(os.path.join(folder, "config.json"), "w") as file:
                json.dump(model, file)
            ask({"argv": ["--model-path", folder, *flags]}, models, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.clear()
        os.environ.update(environ)


# --- one case ----------------------------------------------------------------------------------------------------------

RESOLUTION = (
    "arg_groups/", "server_args.py", "speculative/", "configs/", "lora/", "dllm/", "model_executor/", "utils/server_args_config_parser.py",
)  # fmt: skip
"""An error that SGLang does not mean to raise is its own crash in these files, elsewhere maybe one of the simulation."""
CRASHES = (TypeError, AttributeError, LookupError, ArithmeticError, ValueError, RuntimeError, FileNotFoundError)
NOT_TOLD = frozenset(("random_seed", "model_config", "nccl_port", "download_dir", "device_ids"))
"""Fields that are random each time, or are not settings."""


def ask(case: Json, models: str | None, folder: str) -> Json:
    """SGLang's answer to a case. `folder` is for its files. Changes this process, so it is called in a child."""
    import sglang.srt.server_args as server_args

    os.environ.update({k: str(v) for k, v in (case.get("env") or {}).items()})
    argv = [word.replace("{models}", models or "{models}") for word in case.get("argv", ())]
    for name, text in (case.get("files") or {}).items():
        path = os.path.join(folder, os.path.normpath(os.path.join(os.sep, name)).lstrip(os.sep))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    argv = [word.replace("{files}", folder) for word in argv]
    log, errors = io.StringIO(), io.StringIO()
    logging.root.addHandler(logging.StreamHandler(log))
    real = logging.basicConfig, sys.stderr
    logging.basicConfig, sys.stderr = functools.partial(_always, None), errors
    try:
        answer = {"outcome": "ok", "error": None, "resolved": resolved(server_args, argv, case.get("fields"), folder)}
    except SystemExit:
        said = errors.getvalue().strip().splitlines() or [""]
        answer = {"outcome": "argparse", "error": {"type": "SystemExit", "message": said[-1][:1200], "where": None}}
    except BaseException as error:
        answer = ended(error)
    finally:
        logging.basicConfig, sys.stderr = real
    lines = (line[:300] for line in log.getvalue().splitlines() if line.strip())
    return {"resolved": None, **answer, "log": list(itertools.islice(lines, 40))}


def resolved(server_args: Any, argv: list[str], fields: Json | None, folder: str) -> Json:
    """The fields that words, or the keyword arguments of an engine, resolve to."""
    if fields is None:
        args = server_args.prepare_server_args(argv)
    else:
        placed = {k: v.replace("{files}", folder) if isinstance(v, str) else v for k, v in fields.items()}
        args = server_args.ServerArgs(**placed)
    if hasattr(args, "resolve_once"):
        args.resolve_once()
    args.check_server_args()
    if hasattr(args, "resolved_dict"):
        values = args.resolved_dict()
    else:
        values = {f.name: getattr(args, f.name) for f in dataclasses.fields(args)}
        with suppress(Exception):  # releases in which the fields themselves end up resolved
            result = importlib.import_module("sglang.srt.arg_groups.overrides").resolution_result
            values = {name: result(args, name, value) for name, value in values.items()}
    return {k: plain(v) for k, v in values.items() if k not in NOT_TOLD and not k.startswith("_")}


def plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)) and len(value) <= 16:
        return [plain(v) for v in value]
    if isinstance(value, dict) and len(value) <= 32:
        return {str(k): plain(v) for k, v in value.items()}
    return repr(value)[:200]


def ended(error: BaseException) -> Json:
    """How an exception ends a case: SGLang raised it on purpose, or fell over, or could not be asked."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    where = f"{short(last.filename)}:{last.name}:{last.lineno}" if last else ""
    raised = last is not None and (last.line or "").lstrip().startswith(("raise", "assert"))
    meant = raised or isinstance(error, (AssertionError, NotImplementedError))
    if last is not None and f"{os.sep}sglang{os.sep}" in last.filename and meant:
        outcome = "refused"
    elif isinstance(error, CRASHES) and where.startswith(RESOLUTION):
        outcome = "crashed"
    else:
        outcome = "unanswered"
    told_of: Json = {"type": type(error).__name__, "message": str(error)[:1200], "where": where}
    if outcome == "unanswered":
        told_of["frames"] = [f"{short(f.filename)}:{f.name}:{f.lineno}" for f in frames[-6:]]
    return {"outcome": outcome, "error": told_of}


def short(filename: str) -> str:
    """A file of SGLang's relative to sglang/srt, another one from its package on."""
    for root in (f"{os.sep}sglang{os.sep}srt{os.sep}", f"{os.sep}site-packages{os.sep}"):
        if root in filename:
            return filename.rpartition(root)[2]
    return filename


# --- what a case may not do --------------------------------------------------------------------------------------------

PROGRAMS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.fork",
    "pty.spawn",
)
NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
CHANGES = (
    "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime",
    "shutil.rmtree", "shutil.move",
)  # fmt: skip
FOREIGN_CODE = "code that is not installed"


class Guard:
    """An audit hook, which cannot be removed again. It is active within `with guard:`, and permanently in a child that enters it."""

    def __init__(self, code: Sequence[str]) -> None:
        self._code = tuple(code)
        self._watches = False
        self.folder = ""
        """The folder that may be written to, if any."""
        self.denied: list[str] = []
        sys.addaudithook(self._hook)

    def __enter__(self) -> None:
        self.denied.clear()
        self._watches = True

    def __exit__(self, *_: object) -> None:
        self._watches = False

    def _hook(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._watches:
            return
        if event == "exec":
            name = given[0].co_filename
            if os.path.isabs(name) and not os.path.realpath(name).startswith(self._code):
                self._deny(FOREIGN_CODE, name)
        elif event == "open":
            path, _, flags = given
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            if writes and isinstance(path, (str, bytes, os.PathLike)) and not self._may_change(path):
                self._deny("writing", os.fsdecode(path))
        elif event in CHANGES:
            if isinstance(given[0], (str, bytes, os.PathLike)) and not self._may_change(given[0]):
                self._deny("changing", os.fsdecode(given[0]))
        elif event.startswith(PROGRAMS):
            self._deny("a program", str(given[0] if given else event))
        elif event.startswith(NETWORK):
            self._deny("the network", str(given[-1] if given else event))

    def _may_change(self, path: Any) -> bool:
        full, folder = os.path.realpath(os.fsdecode(path)), os.path.join(os.path.realpath(self.folder), "")
        return full == os.devnull or (bool(self.folder) and os.path.join(full, "").startswith(folder))

    def _deny(self, what: str, which: str) -> None:
        self.denied.append(f"{what}: {which[:200]}")
        raise PermissionError(f"spec-lsp does not let SGLang reach this when it asks: {what}: {which[:200]}")


def installed_code() -> list[str]:
    """The folders whose Python code may run: those from which modules could be imported, or were, before the first case."""
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, *(p for p in sys.path if os.path.isabs(p))}
    files = (getattr(m, "__file__", None) for m in list(sys.modules.values()))
    folders |= {os.path.dirname(f) for f in files if isinstance(f, str) and os.path.isabs(f)}
    return sorted({os.path.join(os.path.realpath(f), "") for f in folders} - {os.sep})


def answer_in_child(case: Json, start: Json, guard: Guard, folder: str) -> Json:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    guard.folder, before = folder, set(sys.modules)
    try:
        limit_memory(start["memory"])
        tempfile.tempdir = os.environ["TMPDIR"] = os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        if case.get("cwd"):
            os.chdir(case["cwd"])
        guard.__enter__()
        answer = ask(case, start.get("models"), folder)
    except BaseException as error:
        answer = {
            "outcome": "unanswered",
            "error": {"type": type(error).__name__, "message": str(error)[:500], "where": None},
        }
    foreign = [d for d in guard.denied if d.startswith(FOREIGN_CODE)]
    if foreign and answer["outcome"] != "argparse":
        answer = {"outcome": "unanswered", "error": {"type": "ForeignCode", "message": foreign[0], "where": None}}
    return {**answer, "denied": guard.denied[:8], "imported": worth_importing(before, of_sglang=start["learns"])}


def worth_importing(before: set[str], *, of_sglang: bool) -> list[str]:
    """The modules that were imported, in order, but for stand-ins and, as it may be asked, those of SGLang."""
    without = KERNELS if of_sglang else ("sglang", *KERNELS)
    return [n for n in list(sys.modules) if n not in before and n.partition(".")[0] not in without]


def limit_memory(more: int) -> None:
    """Limit this process to so many bytes more than it has, if the system reports that.

    A launch may name an endless file.
    """
    with suppress(OSError, ValueError):
        import resource

        with open("/proc/self/status") as file:
            has = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData:"))
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = has + more
        resource.setrlimit(resource.RLIMIT_DATA, (wanted if most < 0 else min(wanted, most), most))


def import_too(names: Sequence[str], guard: Guard, read: set[str]) -> None:
    """What one child had to import the next one finds here. A launch may have named it: it may do no more here than there.

    `read` gets the variables of SGLang's that were read meanwhile: whoever sets one of them would not be heard.
    """
    missing = [n for n in names if n not in sys.modules]
    with reads_of_variables(read):
        for name in missing:
            with suppress(Exception), guard:
                importlib.import_module(name)
    if missing:
        gc.freeze()


@contextmanager
def reads_of_variables(read: set[str]) -> Iterator[None]:
    """Enter the names of SGLang's variables that are read, whether they are set or not."""
    real = os._Environ.__getitem__

    def getitem(self: Any, name: Any) -> Any:
        if isinstance(name, str) and name.startswith(("SGLANG_", "SGL_")):
            read.add(name)
        return real(self, name)

    os._Environ.__getitem__ = getitem  # type: ignore[method-assign]
    try:
        yield
    finally:
        os._Environ.__getitem__ = real  # type: ignore[method-assign]


# --- all cases ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Child:
    n: int
    pid: int
    folder: str
    until: float
    said: bytes = b""


def fork(case: Json, start: Json, guard: Guard) -> tuple[int, Child]:
    """Ask a case in a child: where it answers, and the child."""
    folder = tempfile.mkdtemp()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            signal.alarm(int(start["seconds"]) + 5)  # in case nobody is left to end it
            answer = json.dumps(answer_in_child(case, start, guard, folder))
            with os.fdopen(writing, "w") as file:
                file.write(answer.replace(folder, "{files}"))
        finally:
            os._exit(0)
    os.close(writing)
    return reading, Child(case["n"], pid, folder, time.monotonic() + start["seconds"])


def finished(child: Child, why: str = "") -> Json:
    """The answer of a child that has ended or (with `why`) is ended."""
    if why:
        os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)
    shutil.rmtree(child.folder, ignore_errors=True)
    try:
        answer: Json = json.loads(child.said)
    except ValueError:
        message = why or "SGLang ended without a word"
        answer = {"outcome": "unanswered", "error": {"type": "Ended", "message": message, "where": None}, "denied": []}
    return {"n": child.n, **answer}


def answers(lines: Iterator[Json], start: Json) -> Iterator[Json]:
    """One answer for each case, as they are done; `jobs` cases are asked at once.

    The answer {"n", "unlearnt": true} says that the case must be asked where nothing was learnt: it sets a variable that was read since.
    """
    read: set[str] = set()
    guard = Guard(installed_code())
    gc.collect()
    gc.freeze()  # garbage collection in a child would copy everything that was imported
    running: dict[int, Child] = {}
    more = True
    while more or running:
        while more and len(running) < start["jobs"] and (not running or pending()):
            case = next(lines, None)
            more = case is not None
            if case is not None and read & (case.get("env") or {}).keys():
                yield {"n": case["n"], "unlearnt": True}
            elif case is not None:
                reading, child = fork(case, start, guard)
                running[reading] = child
        waiting = [*running, *([INPUT] if more and len(running) < start["jobs"] else [])]
        ready, _, _ = select.select(waiting, [], [], 0.5)
        for reading in [r for r in ready if r in running]:
            chunk = os.read(reading, 1 << 16)
            running[reading].said += chunk
            if not chunk:
                os.close(reading)
                answer = finished(running.pop(reading))
                imported = answer.pop("imported", ())
                yield answer
                import_too(imported, guard, read)
        for reading in [r for r, child in running.items() if time.monotonic() > child.until]:
            os.close(reading)
            yield finished(running.pop(reading), f"SGLang took longer than {start['seconds']:g} seconds")


INPUT = 0
_buffered = b""


def pending() -> bool:
    """Whether another case can be read without waiting."""
    return b"\n" in _buffered or bool(select.select([INPUT], [], [], 0)[0])


def cases() -> Iterator[Json]:
    """The cases of standard input, which is read by hand: `pending` must know what has come."""
    global _buffered
    while True:
        line, newline, rest = _buffered.partition(b"\n")
        if newline:
            _buffered = rest
            if line.strip():
                yield json.loads(line)
            continue
        chunk = os.read(INPUT, 1 << 16)
        if not chunk:
            return
        _buffered += chunk


def main() -> int:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what SGLang prints is no answer

    def tell(line: Json) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    start = json.loads(sys.argv[1])
    try:
        return work(start, tell)
    finally:
        if os.getppid() != start["owner"]:
            shutil.rmtree(start["folder"], ignore_errors=True)


def work(start: Json, tell: Callable[[Json], None]) -> int:
    """Get ready, and answer; the exit code."""
    try:
        tell({"ready": prepare(start)})
    except CannotAskError as error:
        tell({"failed": error.kind, "why": str(error)})
        return 1
    except Exception as error:  # a release that the simulated platform does not fit
        tell({"failed": "import", "why": told(error)})
        return 1
    for answer in answers(cases(), start):
        tell(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
