"""Which classes building a model class builds, and what of them insists on even shares: small packages made up for it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.sources.classes import facts_of
from tests.sources.trees import Models

BASE = """
class BaseAttention:
    def __init__(self, config, num_heads, num_kv_heads):
        tp_size = get_parallel().tp_size
        self.total_num_heads = num_heads
        assert self.total_num_heads % tp_size == 0
        if num_kv_heads >= tp_size:
            assert num_kv_heads % tp_size == 0
        self.attn = RadixAttention(num_heads)

class BaseMLP:
    def __init__(self, intermediate_size, parallel_group="tp"):
        self.gate_up_proj = MergedColumnParallelLinear(1, [intermediate_size] * 2, parallel_group=parallel_group)

class BaseLayer:
    def __init__(self, config):
        self.self_attn = BaseAttention(config, config.num_attention_heads, config.num_key_value_heads)
        self.mlp = BaseMLP(config.intermediate_size)

class BaseModel:
    def __init__(self, config, layer_type=BaseLayer):
        layer_type = layer_type or BaseLayer
        self.layers = [layer_type(config)]

class BaseForCausalLM:
    def __init__(self, config):
        self.model = self._make_model(config)

    def _make_model(self, config):
        return BaseModel(config)

    def set_eagle3_layers_to_capture(self, layers):
        pass

    def forward(self, input_ids, pp_proxy_tensors=None):
        pass

EntryClass = BaseForCausalLM
"""


def facts(tmp_path: Path, name: str, source: str) -> dict[str, object]:
    folder = tmp_path / "sglang" / "srt" / "models"
    folder.mkdir(parents=True)
    (folder / "base.py").write_text(BASE)
    (folder / "own.py").write_text("from sglang.srt.models.base import *\n" + dedent(source))
    text = (
        (folder / "own.py")
        .read_text()
        .replace("import *", "import BaseAttention, BaseForCausalLM, BaseLayer, BaseMLP, BaseModel")
    )
    (folder / "own.py").write_text(text)
    models = Models(tmp_path)
    return facts_of(models, next(e for e in models.entries() if e.node.name == name))


OWN_ATTENTION = """
class OwnAttention:
    def __init__(self, config):
        attn_tp_size = get_parallel().attn_tp_size
        {}
        self.attn = RadixAttention(1)

class OwnLayer:
    def __init__(self, config):
        self.self_attn = OwnAttention(config)

class OwnModel(BaseModel):
    def __init__(self, config):
        super().__init__(config, layer_type=OwnLayer)

class OwnForCausalLM(BaseForCausalLM):
    def _make_model(self, config):
        return OwnModel(config)

EntryClass = [OwnForCausalLM]
"""


@pytest.mark.parametrize(
    ("source", "heads"),
    [
        ("assert config.num_attention_heads % attn_tp_size == 0", "attn"),
        ("if config.num_attention_heads % attn_tp_size:\n            raise ValueError", "attn"),
        ("self.heads = divide(config.num_attention_heads, attn_tp_size)", "attn"),
        ("self.qkv = QKVParallelLinear(1, 1, config.num_heads, config.num_kv_heads, tp_size=attn_tp_size)", "attn"),
        ("self.qkv = QKVParallelLinear(1, 1, config.num_heads, config.num_kv_heads)", "tp"),
        ("self.heads = config.num_attention_heads // attn_tp_size", None),
        ("if config.some:\n            assert config.num_attention_heads % attn_tp_size == 0", None),
        ("attn_tp_size = 1 if config.dp else 2\n        assert config.num_heads % attn_tp_size == 0", None),
        ("assert config.num_attention_heads % config.groups == 0", None),
    ],
)
def test_heads(tmp_path: Path, source: str, heads: str | None) -> None:
    assert facts(tmp_path, "OwnForCausalLM", OWN_ATTENTION.format(source)).get("heads") == heads


def test_what_is_inherited(tmp_path: Path) -> None:
    found = facts(
        tmp_path, "OwnForCausalLM", "class OwnForCausalLM(BaseForCausalLM):\n    pass\nEntryClass = OwnForCausalLM"
    )
    assert found == {
        "captures": ["eagle3"],
        "stages": True,
        "heads": "tp",
        "kv_heads": True,
        "mlp": "tp",
        "supports": [],
    }


def test_two_kinds_of_attention_say_nothing(tmp_path: Path) -> None:
    source = OWN_ATTENTION.format("assert config.num_heads % attn_tp_size == 0")
    source = source.replace(
        "self.self_attn = OwnAttention(config)", "self.a, self.b = OwnAttention(config), BaseAttention(config, 1, 1)"
    )
    assert "heads" not in facts(tmp_path, "OwnForCausalLM", source)


def test_classes_in_a_table_are_built(tmp_path: Path) -> None:
    source = (
        OWN_ATTENTION.format("pass").replace("layer_type=OwnLayer", "layer_type=LAYERS[0]")
        + "\nLAYERS = {0: OwnLayer}\n"
    )
    assert "heads" not in facts(tmp_path, "OwnForCausalLM", source)


def test_mlp_that_somebody_splits_otherwise(tmp_path: Path) -> None:
    source = OWN_ATTENTION.format("self.mlp = BaseMLP(1, parallel_group='replicated')")
    assert "mlp" not in facts(tmp_path, "OwnForCausalLM", source)


@pytest.mark.parametrize(
    ("call", "towers"),
    [
        ("num_heads=16", "attn"),
        ("num_heads=16, use_data_parallel=get_mm().mm_enable_dp_encoder", "copies"),
        ("num_heads=16, use_data_parallel=True", ""),
        ("num_heads=16, num_dummy_heads=config.num_dummy_heads", ""),
        ("**options", ""),
    ],
)
def test_towers(tmp_path: Path, call: str, towers: str) -> None:
    text = f"""
class Tower(nn.Module):
    def __init__(self, config):
        self.attn = VisionAttention(embed_dim=config.dim, {call})

class OwnForCausalLM(nn.Module):
    def __init__(self, config):
        self.visual = Tower(config)
    def forward_split_prefill(self):
        assert False, "not yet"
    def load_kv_cache_scales(self, path):
        pass

EntryClass = OwnForCausalLM
"""
    found = facts(tmp_path, "OwnForCausalLM", text)
    assert found.get("towers", "") == towers
    assert found["supports"] == ["kv_scales"]
