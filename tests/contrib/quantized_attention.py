"""Drawn nodes of com.microsoft::QAttention, which ONNX Runtime's CPU provider has for float32 and an input of uint8 alone."""
import numpy as np

from node_model import NodeModel
from projected_attention import draw_mask


def draw(random, _):
    batch, heads, size = int(random.integers(1, 4)), int(random.integers(1, 5)), int(random.choice([4, 8]))
    rows, width = int(random.integers(1, 6)), int(random.integers(3, 12))
    past = int(random.integers(1, 5)) if random.random() < 0.5 else 0
    columns = 3 * heads * size
    is_causal, of_columns, is_vector = (random.random() < 0.4 for _ in range(3))
    weight_type = random.choice([np.int8, np.uint8])

    def integers(dtype, *shape):
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)

    def one(value):
        return np.array([value] if is_vector else value)

    model = NodeModel("QAttention", "float32", num_heads=heads)
    model.inputs(input=(integers(np.uint8, batch, rows, width), "B L ."), weights=(integers(weight_type, width, columns), ". ."),
                 bias=(random.standard_normal(columns).astype(np.float32), "."))
    column_scales = random.uniform(0.001, 0.008, columns).astype(np.float32)
    axes = "." if is_vector else ""
    model.inputs(input_scale=(one(np.float32(random.uniform(0.001, 0.008))), axes),
                 weight_scale=(column_scales, ".") if of_columns else (one(column_scales[0]), axes))
    model.constants.update(["weights", "bias", "weight_scale"])
    kind, mask, mask_axes = draw_mask(random, batch, rows, past + rows)
    model.inputs(mask_index=None if mask is None else (mask, mask_axes))
    if mask_axes == ".":
        model.fix("B")
    has_zero = random.random() < 0.7
    zeros = integers(weight_type, columns)
    model.inputs(input_zero_point=(one(np.uint8(random.integers(0, 256))), axes) if has_zero else None,
                 weight_zero_point=None if not has_zero or random.random() < 0.3 else
                 (zeros, ".") if of_columns else (one(zeros[0]), axes))
    model.constants.add("weight_zero_point")
    normal = random.standard_normal((2, batch, heads, max(past, 1), size)).astype(np.float32)
    model.inputs(past=(normal, ". B . P .") if past else None)
    if is_causal:
        model.attributes["unidirectional"] = 1
    has_present = past or random.random() < 0.3
    model.outputs = ["output", "present"] if has_present else ["output"]
    model.name = "_".join(["past" * bool(past), "causal" * is_causal, kind, "columns" * of_columns, np.dtype(weight_type).name])
    return model
