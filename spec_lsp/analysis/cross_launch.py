"""Launches of one document that run together: prefill with decode servers, and the ranks of a launch on several nodes.

Each is fine alone; together they fail, minutes after the start. A launch is reported only if no possible partner in the document agrees
with it, as a document may hold several recipes. The resolved values are compared in every world that both launches are checked in; unknown
values are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from spec_lsp.analysis.diagnostics import setting_place
from spec_lsp.analysis.gpus import Given, given_to, needed_on_a_node, text_before
from spec_lsp.analysis.merge import Verdict
from spec_lsp.analysis.report import Diagnostic, LaunchReport, Related, Repair
from spec_lsp.analysis.rules import (
    DRAFT_MODELS_DIFFER,
    KV_CACHE_DTYPES_DIFFER,
    MORE_GPUS_TOGETHER,
    PAGE_SIZES_DIFFER,
    PIPELINE_SIZES_DIFFER,
    RANKS_DIFFER,
    RANKS_DO_NOT_MEET,
    TRANSFER_BACKENDS_DIFFER,
    TREE_WIDER_THAN_PREFILLS,
)
from spec_lsp.analysis.run import RunResult
from spec_lsp.catalog.binding import Binding, Setting
from spec_lsp.catalog.release import Release
from spec_lsp.facts.clues import read_clues
from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.quantization import checkpoint_config
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Change, Config, Rule
from spec_lsp.syntax.launch import Document, Launch
from spec_lsp.syntax.word import Place

MAX_SERVERS = 32
"""The most launches of a document that are compared: more are a collection of recipes, not one deployment."""

Bind = Callable[[int], Binding]
Differs = Callable[[Any, Any, Config, Config], bool]


@dataclass(eq=False)
class Server:
    """A launch, and what it resolves to in each world. `bind` binds the words of a variant."""

    index: int
    launch: Launch
    verdict: Verdict
    bind: Bind

    @property
    def runs(self) -> Sequence[RunResult]:
        return self.verdict.runs

    @cached_property
    def worlds(self) -> dict[tuple[object, object], list[RunResult]]:
        found: dict[tuple[object, object], list[RunResult]] = {}
        for judged in self.runs:
            found.setdefault((judged.world.release, judged.world.hardware), []).append(judged)
        return found

    @cached_property
    def binding(self) -> Binding:
        return self.bind(0)

    def typed(self, field: str) -> Any:
        """The value that all variants are given; None if they differ or it is unknown."""
        values = [j.binding.settings[field].value if field in j.binding.settings else None for j in self.runs]
        same = all(v == values[0] for v in values) and isinstance(values[0], (str, int))
        return values[0] if same else None

    def text(self, field: str) -> str | None:
        """What is written for a field, known or not: `$MASTER:5000`."""
        setting = self.binding.settings.get(field)
        if setting is None:
            return None
        return "".join(
            f.text if f.text is not None else f"<{f.reason}>" for word in setting.values for f in word.fragments
        )

    def place(self, field: str) -> Place:
        """The field's place if the launch's own document sets it, else the launch's place."""
        setting = self.binding.settings.get(field)
        place = setting_place(setting) if setting is not None else self.launch.place
        return place if place.document == self.launch.place.document else self.launch.place

    def said(self, field: str, value: Any) -> str:
        """How a message names a value: as written, or as resolved."""
        setting: Setting | None = self.binding.settings.get(field)
        flag = "--" + field.replace("_", "-")
        if setting is not None and setting.value == value:
            return f"`{setting.spelled}`"
        return f"`{flag} {value}` (resolved)" if value not in (None, False) else f"no `{flag}`"


def cross_launch_findings(
    document: Document, reports: Sequence[LaunchReport], bind: Callable[[Launch, Release], Bind]
) -> list[Diagnostic]:
    """The diagnostics about launches that belong together. `bind` returns a function that binds the words of a launch's variants in a
    release."""
    servers = [
        Server(i, report.launch, report.verdict, bind(report.launch, report.verdict.main.world.release))
        for i, report in enumerate(reports)
        if report.verdict is not None
        and report.launch.program in ("launch_server", "serve", "dynamo")
        and tells_role(report.launch)
    ]
    if not 2 <= len(servers) <= MAX_SERVERS:
        return []
    return [*_prefill_and_decode(servers), *_ranks(servers), *_one_node(document, servers)]


def tells_role(launch: Launch) -> bool:
    """Whether a launch has a flag that makes it one of several."""
    words = launch.variants[0].words
    return any(w.known_start.startswith(("--disagg", "--node-rank", "--node_rank")) for w in words)


# --- prefill and decode ------------------------------------------------------------------------------------------------


OLDEST = Release(0, 5, 6)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A field that a decode server compares with its prefill server's, since a release; `differs` compares two known values."""

    rule: Rule
    field: str
    says: str
    since: Release = OLDEST
    differs: Differs = lambda prefill, decode, p, d: prefill != decode


def _sizes_clash(prefill: Any, decode: Any, p: Config, d: Config) -> bool:
    return bool(decode not in (1, prefill))


def _dtypes_clash(prefill: Any, decode: Any, p: Config, d: Config) -> bool:
    """`auto` is the model's own type unless a ModelOpt checkpoint asks for FP8 keys and values."""
    if "auto" not in (prefill, decode):
        return bool(prefill != decode)
    other = decode if prefill == "auto" else prefill
    return str(other).startswith(("fp8", "fp4")) and not _asks_for_fp8(p) and not _asks_for_fp8(d)


def _asks_for_fp8(c: Config) -> bool:
    config = checkpoint_config(c.model, c.release)
    return config is not None and "modelopt" in str(config.get("quant_method", "modelopt"))


def _both_draft(p: Config, d: Config) -> bool:
    return p.speculative_algorithm is not None and d.speculative_algorithm is not None


def _topk_clashes(prefill: Any, decode: Any, p: Config, d: Config) -> bool:
    return _both_draft(p, d) and isinstance(prefill, int) and isinstance(decode, int) and decode > prefill


def _drafts_clash(prefill: Any, decode: Any, p: Config, d: Config) -> bool:
    return _both_draft(p, d) and None not in (prefill, decode) and prefill != decode


AGREEMENTS = (
    Agreement(PAGE_SIZES_DIFFER, "page_size", "the decode server refuses every request", Release(0, 5, 8)),
    Agreement(
        KV_CACHE_DTYPES_DIFFER,
        "kv_cache_dtype",
        "the decode server refuses every request",
        Release(0, 5, 10),
        _dtypes_clash,
    ),
    Agreement(
        PIPELINE_SIZES_DIFFER, "pp_size", "the decode server refuses every request", Release(0, 5, 7), _sizes_clash
    ),
    Agreement(TRANSFER_BACKENDS_DIFFER, "disaggregation_transfer_backend", "the KV cache never arrives"),
    Agreement(
        DRAFT_MODELS_DIFFER,
        "speculative_draft_model_path",
        "the draft's KV cache is another model's",
        differs=_drafts_clash,
    ),
    Agreement(
        TREE_WIDER_THAN_PREFILLS,
        "speculative_eagle_topk",
        "the first draft tree is filled up with token 0",
        differs=_topk_clashes,
    ),
)


def _prefill_and_decode(servers: Sequence[Server]) -> Iterator[Diagnostic]:
    """Follows common/conn.py:try_ensure_parallel_info and _resolve_rank_mapping, which the decode server runs at its first request."""
    prefills = [s for s in servers if s.typed("disaggregation_mode") == "prefill"]
    for decode in servers:
        if decode.typed("disaggregation_mode") != "decode" or decode.typed("node_rank") not in (None, 0):
            continue
        partners = [p for p in prefills if p.text("model_path") == decode.text("model_path")]
        clashes = [(p, [a for a in AGREEMENTS if _clash(a, p, decode)]) for p in partners]
        if not clashes or any(not found for _, found in clashes):
            continue
        prefill, found = min(
            clashes, key=lambda c: (len(c[1]), abs(c[0].launch.place.start - decode.launch.place.start))
        )
        for agreement in found:
            yield _disagreement(agreement, prefill, decode)


def _clash(agreement: Agreement, prefill: Server, decode: Server) -> bool:
    """Whether the two differ in every world and every variant."""
    compared = False
    for world in prefill.worlds.keys() & decode.worlds.keys():
        for p in prefill.worlds[world]:
            for d in decode.worlds[world]:
                if p.world.release < agreement.since:
                    return False
                try:
                    one, other = _config(p), _config(d)
                    if not agreement.differs(
                        getattr(one, agreement.field), getattr(other, agreement.field), one, other
                    ):
                        return False
                except (NotKnown, AttributeError):
                    return False
                compared = True
    return compared


def _config(judged: RunResult) -> Config:
    """The configuration that a run resolves to. Raises NotKnown where it is refused, or more may be given than is seen."""
    if judged.bare or judged.bad_arguments or judged.resolution is None or judged.resolution.refused:
        raise NotKnown("resolution", "refused")
    return judged.resolution.config


def _disagreement(agreement: Agreement, prefill: Server, decode: Server) -> Diagnostic:
    field = agreement.field
    one, other = (getattr(_config(s.runs[0]), field) for s in (prefill, decode))
    message = (
        f"The decode server runs with {decode.said(field, other)} and its prefill server with {prefill.said(field, one)}: "
        f"{agreement.says}."
    )
    return _diagnostic(agreement.rule, decode, field, message, prefill, "the prefill server")


def _diagnostic(rule: Rule, server: Server, field: str, message: str, partner: Server, name: str) -> Diagnostic:
    return Diagnostic(
        rule,
        rule.severity,
        message,
        server.place(field),
        f"{rule.name}:{server.index}:{field}",
        related=(Related(partner.place(field), name),),
        launch=server.index,
        source=Repair(_as_in(partner, field), server.verdict.main.world.release),
    )


def _as_in(partner: Server, field: str) -> tuple[Change, ...]:
    """The change that gives a field the partner's value: the same flag, or none. An address that is only valid on its own node is not
    copied."""
    value = partner.typed(field)
    if field == "dist_init_addr" and isinstance(value, str) and _parted(value)[0] in (*_ANY_ADDRESS, "localhost"):
        return ()
    return (Change(drop=(field,)) if value is None else Change(set={field: value}),)


# --- the ranks of one launch -------------------------------------------------------------------------------------------

ALIKE = (
    "nnodes", "tp_size", "pp_size", "dp_size", "ep_size", "attn_cp_size", "enable_dp_attention", "enable_dp_lm_head", "moe_dense_tp_size",
    "moe_a2a_backend", "deepep_mode", "dtype", "quantization", "kv_cache_dtype", "page_size", "attention_backend",
    "prefill_attention_backend", "decode_attention_backend", "moe_runner_backend", "context_length", "chunked_prefill_size",
    "max_prefill_tokens", "schedule_policy", "disable_radix_cache", "disable_overlap_schedule", "enable_mixed_chunk",
    "enable_hierarchical_cache", "disable_cuda_graph", "cuda_graph_max_bs", "enable_two_batch_overlap", "enable_eplb",
    "ep_num_redundant_experts", "enable_lora", "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk",
    "speculative_num_draft_tokens", "speculative_draft_model_path", "disaggregation_mode",
)  # fmt: skip
"""Fields that must be the same on every rank: with another value a rank computes, sends or waits for something else."""


def _ranks(servers: Sequence[Server]) -> Iterator[Diagnostic]:
    """Rank 0 compared with the others: they wait for each other in collectives and at one address, and SGLang does not compare their
    arguments."""
    heads = [s for s in servers if s.typed("node_rank") == 0 and s.text("nnodes")]
    for server in servers:
        rank = server.typed("node_rank")
        if not isinstance(rank, int) or rank == 0 or not server.text("nnodes"):
            continue
        partners = [h for h in heads if _same_role(h, server)]
        if not partners:
            continue
        meeting = [h for h in partners if not _elsewhere(h, server)]
        if not meeting:
            yield _no_meeting(
                server, min(partners, key=lambda h: abs(h.launch.place.start - server.launch.place.start)), rank
            )
            continue
        differing = [(h, [f for f in ALIKE if _typed_apart(h, server, f)]) for h in meeting]
        head, fields = min(differing, key=lambda d: len(d[1]))
        for field in fields:
            yield _apart(server, head, field, rank)


def _same_role(a: Server, b: Server) -> bool:
    fields = ("model_path", "disaggregation_mode")
    return a.launch.program == b.launch.program and all(a.text(f) == b.text(f) for f in fields)


def _elsewhere(head: Server, server: Server) -> bool:
    """Whether two ranks name different addresses, both of them completely known."""
    one, other = head.typed("dist_init_addr"), server.typed("dist_init_addr")
    return isinstance(one, str) and isinstance(other, str) and not _may_meet(one, other)


_ANY_ADDRESS = ("0.0.0.0", "[::]", "::", "*")
_OWN_ADDRESS = ("127.0.0.1", "[::1]", "::1")


def _may_meet(head: str, other: str) -> bool:
    """Whether rank 0 may be reached at another's address. It listens everywhere (`0.0.0.0`), or both addresses are of one node: a number
    and a name may be, and a name and the same with its domain are."""
    (one, port), (two, other_port) = _parted(head), _parted(other)
    if port != other_port:
        return False
    numbers = one[:1].isdigit() or one[:1] == "[", two[:1].isdigit() or two[:1] == "["
    return (
        one == two
        or one in _ANY_ADDRESS
        or numbers[0] != numbers[1]
        or (not any(numbers) and (one.startswith(two + ".") or two.startswith(one + ".")))
    )


def _parted(address: str) -> tuple[str, str]:
    """The node and the port; the node itself is called `localhost`."""
    host, _, port = address.rpartition(":")
    host = host.rpartition("/")[2].lower()
    return "localhost" if host in _OWN_ADDRESS else host, port


def _typed_apart(head: Server, server: Server, field: str) -> bool:
    """Whether two ranks run with different values in every world."""
    if field not in head.binding.settings and field not in server.binding.settings:
        return False
    return _clash(Agreement(RANKS_DIFFER, field, ""), head, server)


def _no_meeting(server: Server, head: Server, rank: int) -> Diagnostic:
    field = "dist_init_addr"
    message = (
        f"Rank {rank} waits at {server.said(field, server.typed(field))} and rank 0 at {head.said(field, head.typed(field))}: "
        "the ranks of a launch meet at one address, rank 0's, and the launch hangs."
    )
    return _diagnostic(RANKS_DO_NOT_MEET, server, field, message, head, "rank 0")


def _apart(server: Server, head: Server, field: str, rank: int) -> Diagnostic:
    one, other = (getattr(_config(s.runs[0]), field) for s in (head, server))
    message = (
        f"Rank {rank} runs with {server.said(field, other)} and rank 0 with {head.said(field, one)}: ranks of one launch compute in "
        "step, and SGLang hangs or fails where they differ."
    )
    return _diagnostic(RANKS_DIFFER, server, field, message, head, "rank 0")


# --- GPUs of one node --------------------------------------------------------------------------------------------------


def _one_node(document: Document, servers: Sequence[Server]) -> Iterator[Diagnostic]:
    """Ranks of one launch that share the GPUs of one resource request: they run at the same time, or not at all."""
    shared: dict[tuple[object, ...], list[tuple[Server, Given, int]]] = {}
    for server in servers:
        given, needed = _given(document, server), _needed(server)
        address, rank = server.typed("dist_init_addr"), server.typed("node_rank")
        if given is not None and needed is not None and address is not None and rank is not None:
            shared.setdefault((given.place, address), []).append((server, given, needed))
    for ranks in shared.values():
        numbers = {s.typed("node_rank") for s, _, _ in ranks}
        total = sum(needed for _, _, needed in ranks)
        last, given, _ = ranks[-1]
        if len(ranks) == len(numbers) > 1 and total > given.count:
            yield _too_many(last, given, len(ranks), total)


def _given(document: Document, server: Server) -> Given | None:
    """The number of GPUs that every variant of a launch is given; None if variants differ."""
    clues = read_clues(server.launch.clues)
    found = {
        min(given_to(clues, v, text_before(document)), key=lambda g: g.count, default=None)
        for v in server.launch.variants
    }
    return found.pop() if len(found) == 1 else None


def _needed(server: Server) -> int | None:
    """The number of GPUs that every variant of a launch needs on a node; None if variants differ."""
    found = {needed_on_a_node(j.binding, server.verdict) for j in server.runs}
    return found.pop() if len(found) == 1 else None


def _too_many(server: Server, given: Given, ranks: int, total: int) -> Diagnostic:
    message = (
        f"The {ranks} ranks that meet at `{server.typed('dist_init_addr')}` need {total} GPUs together, but `{given.text}` gives "
        f"{given.count}: SGLang fails while it starts."
    )
    rule, related = MORE_GPUS_TOGETHER, (Related(given.place, "the GPUs they are given"),)
    place = server.place("tp_size")
    return Diagnostic(
        rule, rule.severity, message, place, f"{rule.name}:{server.index}", related=related, launch=server.index
    )
