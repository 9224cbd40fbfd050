"""Models of one operator that computes attention already, com.microsoft's or ONNX's, with inputs that ONNX Runtime takes."""
import dataclasses

import numpy as np
from onnx import helper, numpy_helper

ONNX_OPSETS = (23, 24)
OTHER_OPSETS = (17, 18, 21)


@dataclasses.dataclass
class DrawnOperator:
    model: bytes
    feeds: dict  # by input
    kind: str
    notes: str
    dtype: np.dtype


class Drawing:
    """A model under construction: inputs declare numbers, names that they share, names of their own, or some of each."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.dtype = np.float16 if self.chance(0.15) else np.float32
        self.naming = self.pick("numbers", "shared", "own", "mixed")
        self.feeds, self.infos, self.constants, self.notes = {}, [], [], []

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def chance(self, probability):
        return self.random.random() < probability

    def normal(self, *dims):
        return self.random.standard_normal(dims).astype(self.dtype)

    def declared(self, name, sizes, axes):
        """How input NAME declares SIZES; AXES name those that are no fixed number of the operator."""
        named = {"numbers": 0, "mixed": 0.5}.get(self.naming, 1)
        own = f"{name}_" if self.naming == "own" else ""
        return [own + axis if isinstance(axis, str) and self.chance(named) else int(size) for size, axis in zip(sizes, axes)]

    def given(self, name, array, axes):
        info = helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                             self.declared(name, array.shape, axes))
        self.feeds[name] = array
        self.infos.append(info)
        return name

    def given_or_constant(self, name, array, axes, constant=0.2):
        if not self.chance(constant):
            return self.given(name, array, axes)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def integer_mask(self, name, dims, axes, empties):
        mask = (self.random.random(dims) < 0.7).astype(np.int32)
        mask[..., 0] = 1
        if empties and self.chance(0.2):
            mask[0] = 0
        return self.given(name, mask, axes)

    def attributes(self, **probabilities):
        """Attributes that are left out as often as PROBABILITIES, of (probability, choices), say."""
        return {name: self.pick(*choices) for name, (probability, *choices) in probabilities.items() if self.chance(probability)}

    def finished(self, kind, domain, op_type, inputs, outputs, attributes, opset):
        while inputs and not inputs[-1]:
            inputs.pop()
        nodes = [helper.make_node(op_type, inputs, outputs, name="node", domain=domain, **attributes)]
        results = [self.passed_on(output, nodes) for output in outputs if output]
        element = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        graph = helper.make_graph(nodes, "operator", self.infos,
                                  [helper.make_tensor_value_info(result, element, None) for result in results], self.constants)
        imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=11 if opset > 23 else 10)
        notes = f"{self.naming} {' '.join(self.notes)} {attributes}"
        return DrawnOperator(model.SerializeToString(), self.feeds, kind, notes, np.dtype(self.dtype))

    def passed_on(self, output, nodes):
        """OUTPUT as a result of the model, or what another node makes of it."""
        if not self.chance(0.3):
            return output
        nodes.append(helper.make_node(self.pick("Identity", "Neg"), [output], [f"{output}_of"]))
        return f"{output}_of"


def multi_head_attention(d):
    b, l, n, size = (int(d.pick(*sizes)) for sizes in ((1, 2, 3), (1, 2, 5), (1, 2, 4), (4, 8)))
    form = d.pick("separate", "separate", "by heads", "packed keys", "packed")
    s = l if form == "packed" or d.chance(0.4) else int(d.pick(1, 3, 6))
    v_size = int(d.pick(size, size, 12)) if form in ("separate", "by heads") else size
    past = int(d.pick(1, 2, 4)) if form == "separate" and d.chance(0.3) else 0
    d.notes.append(f"{form} b{b} l{l} s{s} n{n} size{size}/{v_size} past{past}")
    query = ("q", d.normal(b, l, n * size), ("batch", "seq", 0))
    inputs = {
        "separate": lambda: [d.given(*query), d.given("k", d.normal(b, s, n * size), ("batch", "kv", 0)),
                             d.given("v", d.normal(b, s, n * v_size), ("batch", "kv", 0))],
        "by heads": lambda: [d.given(*query), d.given("k", d.normal(b, n, s, size), ("batch", 0, "kv", 0)),
                             d.given("v", d.normal(b, n, s, v_size), ("batch", 0, "kv", 0))],
        "packed keys": lambda: [d.given(*query), d.given("k", d.normal(b, s, n, 2, size), ("batch", "kv", 0, 0, 0)), ""],
        "packed": lambda: [d.given("q", d.normal(b, l, n, 3, size), ("batch", "seq", 0, 0, 0)), "", ""]}[form]()
    biased = form == "separate" and d.chance(0.3)
    inputs.append(d.given_or_constant("bias", d.normal(n * (2 * size + v_size)), (0,), 0.6) if biased else "")
    inputs.append(padding_mask(d, b, l, s + past))
    batch, heads = d.pick(1, b), d.pick(1, n)
    inputs.append(d.given_or_constant("added", d.normal(batch, heads, l, s + past), ("added_batch", "added_heads", "seq", "total"))
                  if d.chance(0.3) else "")
    if past:
        inputs += [d.given("past_key", d.normal(b, n, past, size), ("batch", 0, "past", 0)),
                   d.given("past_value", d.normal(b, n, past, v_size), ("batch", 0, "past", 0))]
    attributes = d.attributes(scale=(0.3, 0.3, 1.0), unidirectional=(0.25, 1), mask_filter_value=(0.2, -1e4, -1e9, -5.0))
    outputs = ["y", "key", "value"] if past or d.chance(0.2) else ["y"]
    return d.finished("MultiHeadAttention", "com.microsoft", "MultiHeadAttention", inputs, outputs,
                      {"num_heads": n, **attributes}, int(d.pick(*OTHER_OPSETS)))


def padding_mask(d, b, l, total):
    form = d.pick("none", "none", "lengths", "keys", "scores")
    d.notes.append(f"mask={form}")
    if form == "lengths":
        return d.given("mask", d.random.integers(1, total + 1, b).astype(np.int32), ("batch",))
    if form == "keys":
        return d.integer_mask("mask", (b, total), ("batch", "total"), True)
    return d.integer_mask("mask", (b, l, total), ("batch", "seq", "total"), False) if form == "scores" else ""


def grouped_query_attention(d):
    b, kv, group, l = (int(d.pick(*sizes)) for sizes in ((1, 2), (1, 2), (1, 2, 3), (1, 4, 6)))
    n, size = kv * group, 16
    past = 0 if l > 1 else int(d.pick(0, 3, 5))
    total, room = past + l, past + int(d.pick(0, 0, 4))
    d.notes.append(f"b{b} n{n}/{kv} l{l} past{past} room{room}")
    if d.chance(0.2):
        inputs = [d.given("q", d.normal(b, l, (n + 2 * kv) * size), ("batch", "seq", 0)), "", ""]
    else:
        inputs = [d.given("q", d.normal(b, l, n * size), ("batch", "seq", 0))]
        inputs += [d.given(name, d.normal(b, l, kv * size), ("batch", "seq", 0)) for name in ("k", "v")]
    if room or d.chance(0.5):
        inputs += [d.given(name, d.normal(b, kv, room, size), ("batch", 0, "room", 0)) for name in ("past_key", "past_value")]
    else:
        inputs += ["", ""]
    lengths = np.full((b, 1) if d.chance(0.3) else (b,), total - 1, np.int32)
    inputs.append(d.given_or_constant("lengths", lengths, ("batch", 0)[:lengths.ndim]))
    inputs.append(d.given_or_constant("total", np.full((1,) if d.chance(0.5) else (), total, np.int32), (0,), 0.4))
    attributes = d.attributes(scale=(0.3, 0.3, 1.0), softcap=(0.2, 5.0, 30.0), local_window_size=(0.2, 2, 8),
                              do_rotary=(0.3, 1), smooth_softmax=(0.1, 1))
    inputs += rotary_inputs(d, b, l, past, size) if "do_rotary" in attributes else ["", "", ""]
    inputs.append(d.given_or_constant("added", d.normal(d.pick(1, b), d.pick(1, n), l, total),
                                      ("added_batch", "added_heads", "seq", "total")) if d.chance(0.2) else "")
    inputs.append(d.given_or_constant("sinks", d.normal(n), (0,), 0.5) if d.chance(0.15) else "")
    return d.finished("GroupQueryAttention", "com.microsoft", "GroupQueryAttention", inputs, ["y", "key", "value"],
                      {"num_heads": n, "kv_num_heads": kv, **attributes}, int(d.pick(*OTHER_OPSETS)))


def rotary_inputs(d, b, l, past, size):
    angles = np.outer(np.arange(32), 1e4 ** (-np.arange(size // 2) / (size // 2)))
    caches = [d.given_or_constant(name, table.astype(d.dtype), ("positions", 0), 0.8)
              for name, table in (("cos", np.cos(angles)), ("sin", np.sin(angles)))]
    positions = np.tile(np.arange(past, past + l), (b, 1))
    return caches + [d.given("positions", positions, ("batch", "seq")) if d.chance(0.2) else ""]


def projected_attention(d):
    b, l, n, size = (int(d.pick(*sizes)) for sizes in ((1, 2), (1, 3, 5), (1, 2, 4), (4, 8)))
    past = int(d.pick(1, 3)) if d.chance(0.3) else 0
    v_size = size if past or d.chance(0.7) else 2 * size
    columns = n * (2 * size + v_size)
    d.notes.append(f"b{b} l{l} n{n} size{size}/{v_size} past{past}")
    inputs = [d.given("x", d.normal(b, l, 8), ("batch", "seq", 0)),
              d.given_or_constant("weights", d.normal(8, columns), (0, 0), 0.8),
              d.given_or_constant("bias", d.normal(columns), (0,), 0.8), padding_mask(d, b, l, past + l),
              d.given("past", d.normal(2, b, n, past, size), (0, "batch", 0, "past", 0)) if past else ""]
    attributes = d.attributes(unidirectional=(0.3, 1), scale=(0.2, 0.3, 1.0), mask_filter_value=(0.2, -1e4, -1e9))
    if v_size != size:
        attributes["qkv_hidden_sizes"] = [n * size, n * size, n * v_size]
    return d.finished("Attention", "com.microsoft", "Attention", inputs, ["y", "present"] if past else ["y"],
                      {"num_heads": n, **attributes}, int(d.pick(*OTHER_OPSETS)))


def quantized_attention(d):
    d.dtype = np.float32  # ONNX Runtime's CPU provider has no other, and takes an input of uint8 alone
    b, l, n, size = (int(d.pick(*sizes)) for sizes in ((1, 2), (1, 3, 5), (1, 2, 4), (4, 8)))
    past, columns = int(d.pick(1, 3)) if d.chance(0.3) else 0, 3 * n * size
    weight_type = d.pick(np.int8, np.uint8)
    d.notes.append(f"b{b} l{l} n{n} size{size} past{past} {np.dtype(weight_type)}")

    def integers(dtype, *dims):
        return d.random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, dims).astype(dtype)

    def of_weights(name, values):
        count = d.pick((), (1,), (columns,))
        return d.given_or_constant(name, values[:1].reshape(count) if count != (columns,) else values, (0,), 0.7)

    inputs = [d.given("x", integers(np.uint8, b, l, 8), ("batch", "seq", 0)),
              d.given_or_constant("weights", integers(weight_type, 8, columns), (0, 0), 0.8),
              d.given_or_constant("bias", d.normal(columns), (0,), 0.8),
              d.given("x_scale", np.full(d.pick((), (1,)), 0.01, np.float32), (0,)),
              of_weights("scales", d.random.uniform(0.005, 0.02, columns).astype(np.float32)), padding_mask(d, b, l, past + l),
              d.given("x_zero", integers(np.uint8, *d.pick((), (1,))), (0,)) if d.chance(0.6) else "",
              of_weights("zeros", integers(weight_type, columns)) if d.chance(0.5) else "",
              d.given("past", d.normal(2, b, n, past, size), (0, "batch", 0, "past", 0)) if past else ""]
    return d.finished("QAttention", "com.microsoft", "QAttention", inputs, ["y", "present"] if past or d.chance(0.2) else ["y"],
                      {"num_heads": n, **d.attributes(unidirectional=(0.3, 1))}, int(d.pick(*OTHER_OPSETS)))


def onnx_attention(d):
    b, kv, group, l, size = (int(d.pick(*sizes)) for sizes in ((1, 2, 3), (1, 2, 3), (1, 1, 2), (1, 2, 5), (4, 8)))
    n, s, v_size, past, opset = kv * group, int(d.pick(l, 1, 3, 6)), int(d.pick(size, size, 6)), int(d.pick(0, 0, 2, 3)), \
        int(d.pick(*ONNX_OPSETS))
    total, is_merged = past + s, d.chance(0.5)
    d.notes.append(f"opset{opset} {'3d' if is_merged else '4d'} b{b} n{n}/{kv} l{l} s{s} size{size}/{v_size} past{past}")

    def operand(name, heads, rows, features, axis):
        if is_merged:
            return d.given(name, d.normal(b, rows, heads * features), ("batch", axis, 0))
        return d.given(name, d.normal(b, heads, rows, features), ("batch", 0, axis, 0))

    inputs = [operand("q", n, l, size, "seq"), operand("k", kv, s, size, "kv"), operand("v", kv, s, v_size, "kv"),
              onnx_mask(d, b, n, l, total)]
    if past:
        inputs += [d.given("past_key", d.normal(b, kv, past, size), ("batch", 0, "past", 0)),
                   d.given("past_value", d.normal(b, kv, past, v_size), ("batch", 0, "past", 0))]
    elif opset == 24 and d.chance(0.25):
        inputs += ["", "", d.given("lengths", d.random.integers(1, s + 1, b), ("batch",))]
    attributes = d.attributes(is_causal=(0.35, 1), scale=(0.3, 0.3, 1.0), softcap=(0.25, 3.0, 20.0))
    if is_merged:
        attributes.update(q_num_heads=n, kv_num_heads=kv)
    outputs = ["y", "key", "value"] if past else ["y"]
    if d.chance(0.2):
        attributes["qk_matmul_output_mode"] = int(d.pick(0, 1, 2, 3))
        outputs = [*outputs, "", ""][:3] + ["scores"]
    return d.finished(f"Attention-{opset}", "", "Attention", inputs, outputs, attributes, opset)


def onnx_mask(d, b, n, l, total):
    form = d.pick("none", "bool", "bool", "float", "fills")
    dims = d.pick((l, total), (1, 1, l, total), (b, 1, l, total), (b, n, l, total), (1, n, l, total))
    d.notes.append(f"mask={form}{dims}")
    if form == "none":
        return ""
    keep = d.random.random(dims) < 0.7
    if form == "fills" or d.chance(0.7):
        keep[..., 0] = True
    fills = np.where(keep, 0, d.pick(-np.inf, np.finfo(d.dtype).min, -1e4)).astype(d.dtype)
    return d.given_or_constant("mask", {"bool": keep, "float": d.normal(*dims), "fills": fills}[form], [0] * len(dims))


OPERATORS = (multi_head_attention, multi_head_attention, grouped_query_attention, grouped_query_attention, projected_attention,
             quantized_attention, onnx_attention, onnx_attention)


def draw_operator(seed):
    drawing = Drawing(seed)
    return drawing.pick(*OPERATORS)(drawing)
