import sglang as sgl
from sglang import Engine as Offline
from sglang.srt.server_args import ServerArgs

# spec-lsp: sglang=0.5.21 gpu=h100
DRAFT = "acme/chat-8b-eagle3"
options = dict(trust_remote_code=True, mem_fraction_static=0.85)
options["page_size"] = 64

llm = sgl.Engine(
    model_path="acme/chat-8b",
    tp_size=2,
    # drafting
    speculative_algorithm="EAGLE3",
    speculative_draft_model_path=DRAFT,
    speculative_num_steps=3,
    speculative_eagle_topk=1,
    speculative_num_draft_tokens=8,
    **options,
)
offline = Offline(model_path="acme/chat-8b", max_model_len=4096, tp=2)


def make(model: str, **kwargs):
    return ServerArgs(model, dtype='bfloat16', cuda_graph_bs_decode=[1, 2, 4], **kwargs)


def unknown(args):
    return sgl.Engine(model_path=args.model, tp_size=args.tp, log_level="info")


engine = sgl.Engine(server_args=make("acme/chat-8b"))
