"""Drawn nodes of com.microsoft::Attention."""
import numpy as np

from multi_head_attention import padding_mask
from node_model import NodeModel


def draw_mask(random, batch, rows, total):
    """Kind, the mask or None, and its axes as NodeModel.inputs() takes them."""
    kind = random.choice(["none", "lengths", "ends_starts", "lengths_starts", "keys", "scores", "nothing"])
    if kind == "ends_starts":
        ends = random.integers(1, total + 1, batch)
        mask = np.concatenate([ends, random.integers(0, ends)])
    elif kind == "nothing":
        mask = random.integers(0, 2, (random.choice([1, batch]), 1))
    else:
        mask = None if kind == "none" else padding_mask(random, kind, batch, rows, total)
    axes = {"keys": "B T", "scores": "B L T", "nothing": ". ."}.get(kind, ".")
    return kind, None if mask is None else mask.astype(np.int32), axes


def draw(random, dtype):
    batch, heads, size = int(random.integers(1, 4)), int(random.integers(1, 5)), int(random.choice([4, 8]))
    rows, width = int(random.integers(1, 6)), int(random.integers(3, 12))
    past = int(random.integers(1, 5)) if random.random() < 0.5 else 0
    total = past + rows
    value_size = size if past or random.random() < 0.6 else size + 2
    is_causal = random.random() < 0.4

    def normal(*shape):
        return random.standard_normal(shape).astype(dtype)

    sizes = [heads * size, heads * size, heads * value_size]
    model = NodeModel("Attention", dtype, num_heads=heads)
    model.inputs(input=(normal(batch, rows, width), "B L ."), weights=(normal(width, sum(sizes)) / 2, ". ."),
                 bias=(normal(sum(sizes)), "."))
    if random.random() < 0.5:
        model.constants.update(["weights", "bias"])
    if value_size != size or random.random() < 0.2:
        model.attributes["qkv_hidden_sizes"] = sizes
    kind, mask, axes = draw_mask(random, batch, rows, total)
    model.inputs(mask_index=None if mask is None else (mask, axes))
    if axes == ".":
        model.fix("B")
    model.inputs(past=(normal(2, batch, heads, past, size), ". B . P .") if past else None)
    has_bias = not past and random.random() < 0.4  # ONNX Runtime does not take both
    bias_shape = (random.choice([1, batch]), random.choice([1, heads]), rows, total)
    model.inputs(attention_bias=(normal(*bias_shape), ". . L T") if has_bias else None)
    if is_causal:
        model.attributes["unidirectional"] = 1
    if random.random() < 0.3:
        model.attributes["scale"] = float(random.uniform(0.1, 1))
    if mask is not None and random.random() < 0.4:
        model.attributes["mask_filter_value"] = float(random.choice([-2.5, -1e9, np.finfo(np.float32).min]))
    has_present = past or (value_size == size and random.random() < 0.3)
    model.outputs = ["output", "present"] if has_present else ["output"]
    model.name = "_".join(["past" * bool(past), "causal" * is_causal, kind, "attention_bias" * has_bias])
    return model
