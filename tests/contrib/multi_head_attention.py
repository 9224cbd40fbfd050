"""Drawn nodes of com.microsoft::MultiHeadAttention."""
import numpy as np

from node_model import NodeModel


def padding_mask(random, kind, batch, queries, keys):
    """An integer mask of which every query keeps a key; the forms that the operator takes."""
    lengths = random.integers(1, keys + 1, batch)
    if kind == "lengths":
        return lengths
    if kind == "lengths_starts":
        starts = np.arange(batch + 1)
        return np.concatenate([lengths, starts * queries, starts * keys])
    shape = (batch, keys) if kind == "keys" else (batch, queries, keys)
    mask = random.random(shape) < 0.6
    mask[..., 0] = True
    return mask


def packed(parts):
    """(B, S, H*D) each as (B, S, H, PARTS, D)."""
    return np.stack(parts, axis=3)


def draw(random, dtype):
    batch, heads, size = int(random.integers(1, 4)), int(random.integers(1, 5)), int(random.choice([4, 8]))
    queries, keys = int(random.integers(1, 6)), int(random.integers(2, 7))
    layout = random.choice(["3d", "3d", "3d", "bnsh", "packed_kv", "packed_qkv"])
    has_past = layout == "3d" and random.random() < 0.5
    is_causal = random.random() < 0.4
    if layout == "packed_qkv" or random.random() < 0.4:
        keys = queries
    past = int(random.integers(1, 5)) if has_past else 0
    total = keys + past
    value_size = size if has_past or layout != "3d" or random.random() < 0.6 else size + 2

    def normal(*shape):
        return random.standard_normal(shape).astype(dtype)

    q = normal(batch, queries, heads, size)
    k = normal(batch, keys, heads, size)
    v = normal(batch, keys, heads, value_size)
    q3, k3, v3 = (x.reshape(*x.shape[:2], -1) for x in (q, k, v))
    model = NodeModel("MultiHeadAttention", dtype, num_heads=heads)
    model.name = layout
    if layout == "packed_qkv":
        model.inputs(query=(packed([q, k, v]), "B L . . ."), key=None, value=None)
    elif layout == "packed_kv":
        model.inputs(query=(q3, "B L ."), key=(packed([k, v]), "B S . . ."), value=None)
    elif layout == "bnsh":
        model.inputs(query=(q3, "B L ."), key=(k.transpose(0, 2, 1, 3), "B . S ."),
                     value=(v.transpose(0, 2, 1, 3), "B . S ."))
    else:
        same = "L" if keys == queries else "S"
        model.inputs(query=(q3, "B L ."), key=(k3, f"B {same} ."), value=(v3, f"B {same} ."))
    if layout.startswith("packed"):  # which ONNX Runtime has no CPU kernel for: it is given what is in them
        model.unpacked = {"query": q3, "key": k3, "value": v3}
    has_bias = layout in ("3d", "packed_qkv") and random.random() < 0.4
    model.inputs(bias=(normal(heads * (2 * size + value_size)), ".") if has_bias else None)
    kind = random.choice(["none", "none", "lengths", "lengths_starts", "keys", "scores"])
    mask = None if kind == "none" else padding_mask(random, kind, batch, queries, total).astype(np.int32)
    # A mask (B) and one (3B + 2) are told apart by their fixed size alone.
    axes = {"keys": "B T", "scores": "B L T"}.get(kind, ".")
    model.inputs(key_padding_mask=None if mask is None else (mask, axes))
    if kind.startswith("lengths"):
        model.fix("B")
    bias_shape = (random.choice([1, batch]), random.choice([1, heads]), queries, total)
    has_attention_bias = random.random() < 0.4
    model.inputs(attention_bias=(normal(*bias_shape), ". . L T") if has_attention_bias else None)
    if has_past:
        model.inputs(past_key=(normal(batch, heads, past, size), "B . P ."),
                     past_value=(normal(batch, heads, past, value_size), "B . P ."))
    if is_causal:
        model.attributes["unidirectional"] = 1
    if random.random() < 0.3:
        model.attributes["scale"] = float(random.uniform(0.1, 1))
    if mask is not None and random.random() < 0.4:
        model.attributes["mask_filter_value"] = float(random.choice([-2.5, -1e9, np.finfo(np.float32).min]))
    wants_present = has_past or random.random() < 0.2
    model.outputs = ["output"] + (["present_key", "present_value"] if wants_present else [])
    model.name = "_".join([layout, "past" * has_past, "causal" * is_causal, kind, "bias" * has_bias,
                           "attention_bias" * has_attention_bias])
    return model
