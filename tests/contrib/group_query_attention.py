"""Drawn nodes of com.microsoft::GroupQueryAttention."""
import numpy as np

from node_model import NodeModel


def draw(random, dtype):
    batch, group, kv_heads = int(random.integers(1, 4)), int(random.choice([1, 2, 3])), int(random.integers(1, 3))
    heads = group * kv_heads
    has_rotary = random.random() < 0.6
    size = int(random.choice([16, 32])) if has_rotary else int(random.choice([8, 16]))
    stage = random.choice(["prompt", "prompt_buffer", "decode", "decode_buffer", "chunk", "chunk_buffer"])
    queries = 1 if stage.startswith("decode") else int(random.integers(2, 6))
    if stage.startswith("chunk"):  # ONNX Runtime takes it for one batch element only
        batch = 1
    past = 0 if stage == "prompt" else int(random.integers(2, 7))
    lengths = np.full(batch, queries)
    if stage == "prompt_buffer":
        past += queries
        total = queries
    elif stage == "prompt":
        total = queries
    else:
        total = past + queries
        if stage.endswith("buffer"):
            total, past = total, total + int(random.integers(0, 3))
        lengths = random.integers(queries, total + 1, batch)
        lengths[0] = total
    if stage.startswith("prompt") and random.random() < 0.7:
        lengths = random.integers(1, queries + 1, batch)
    is_packed = random.random() < 0.3

    def normal(*shape):
        return random.standard_normal(shape).astype(dtype)

    q, k, v = (normal(batch, queries, count * size) for count in (heads, kv_heads, kv_heads))
    model = NodeModel("GroupQueryAttention", dtype, num_heads=heads, kv_num_heads=kv_heads)
    if is_packed:
        model.inputs(query=(np.concatenate([q, k, v], axis=2), "B L ."), key=None, value=None)
    else:
        model.inputs(query=(q, "B L ."), key=(k, "B L ."), value=(v, "B L ."))
    caches = [(normal(batch, kv_heads, past, size), "B . P .") for _ in range(2)] if past else [None, None]
    model.inputs(past_key=caches[0], past_value=caches[1], seqlens_k=((lengths - 1).astype(np.int32), "B"),
                 total_sequence_length=(np.array(total, np.int32), ""))
    if has_rotary:
        half = size // 2 if size == 16 or random.random() < 0.6 else size // 4
        angles = random.uniform(-3, 3, (32, half))
        model.inputs(cos_cache=(np.cos(angles).astype(dtype), ". ."), sin_cache=(np.sin(angles).astype(dtype), ". ."))
        model.constants.update(["cos_cache", "sin_cache"])
        model.attributes.update(do_rotary=1, rotary_interleaved=int(random.integers(0, 2)))
    else:
        model.inputs(cos_cache=None, sin_cache=None)
    has_positions = has_rotary and random.random() < 0.3
    positions = (lengths - queries if stage[0] in "dc" else np.zeros(batch, int))[:, None] + np.arange(queries) + 1
    model.inputs(position_ids=(positions.astype(np.int64), "B L") if has_positions else None)
    has_bias = random.random() < 0.3
    bias_shape = (random.choice([1, batch]), random.choice([1, heads]), queries, total)
    model.inputs(attention_bias=(normal(*bias_shape), ". . L T") if has_bias else None)
    sinks = random.choice(["no", "no", "sinks", "smooth", "sinks_smooth"])
    model.inputs(head_sink=(normal(heads), ".") if sinks.startswith("sinks") else None)
    if sinks.endswith("smooth"):
        model.attributes["smooth_softmax"] = 1
    has_window = random.random() < 0.3
    if has_window:
        model.attributes["local_window_size"] = int(random.integers(1, 5))
    if random.random() < 0.3:
        model.attributes["softcap"] = float(random.uniform(0.5, 3))
    if random.random() < 0.3:
        model.attributes["scale"] = float(random.uniform(0.1, 1))
    model.outputs = ["output", "present_key", "present_value"] if past or random.random() < 0.7 else ["output"]
    model.name = "_".join([stage, "packed" * is_packed, "rotary" * has_rotary, "positions" * has_positions,
                           "window" * has_window, "attention_bias" * has_bias, sinks * (sinks != "no")])
    return model
