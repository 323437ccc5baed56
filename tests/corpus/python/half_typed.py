import sglang as sgl


def first():
    return sgl.Engine(model_path="acme/dense", tp_size=2, attention_backend="fa3")


def second(:
    pass


llm = sgl.Engine(
    model_path="acme/moe",
    ep_size=8,
    moe_a2a_backend="de
