"""Builds models node by node, with random weights, as exporters write them: attention in its parts."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """A graph that grows. Methods give the name of the value that they make.

    SPELLING says what stands in attention's place: "sdpa" what PyTorch's exporters write of scaled_dot_product_attention, "eager"
    an eager module, "none" Q: no runtime computes attention in less time.
    """

    def __init__(self, spelling="eager"):
        self.spelling = spelling
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.random = np.random.default_rng(0)

    def node(self, op, *inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def floats(self, *values):
        return self.constant(np.array(values if len(values) != 1 else values[0], np.float32))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape, dtype=np.float32) * np.float32(shape[0] ** -0.5))

    def linear(self, x, width, out, bias=True):
        product = self.node("MatMul", x, self.weight(width, out))
        return self.node("Add", self.constant(np.zeros(out, np.float32)), product) if bias else product

    def layer_norm(self, x, width):
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        return self.node("LayerNormalization", x, self.constant(ones), self.constant(zeros), axis=-1, epsilon=1e-5)

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.floats(2**0.5)))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.floats(1.0))), self.floats(0.5))

    def size(self, x, axis):
        """The size of an axis, as a tensor of one element."""
        return self.node("Gather", self.node("Shape", x), self.ints(axis), axis=0)

    def input(self, name, kind, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name, value, *shape):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def save(self, path):
        graph = helper.make_graph(self.nodes, "model", self.inputs, self.outputs, self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


def split_heads(graph, x, heads, head_size):
    """(B, S, H*D) as (B, H, S, D)."""
    return graph.node("Transpose", graph.node("Reshape", x, graph.ints(0, -1, heads, head_size)), perm=[0, 2, 1, 3])


def merge_heads(graph, x, width):
    """(B, H, S, D) as (B, S, H*D)."""
    return graph.node("Reshape", graph.node("Transpose", x, perm=[0, 2, 1, 3]), graph.ints(0, -1, width))


def _scores(graph, q, k, head_size):
    """Q K^T / sqrt(D): the product divided, or both factors multiplied by the root."""
    keys = graph.node("Transpose", k, perm=[0, 1, 3, 2])
    if graph.spelling == "eager":
        return graph.node("Div", graph.node("MatMul", q, keys), graph.floats(head_size**0.5))
    root = graph.floats(head_size**-0.25)
    return graph.node("MatMul", graph.node("Mul", q, root), graph.node("Mul", keys, root))


def attention(graph, q, k, v, head_size, mask=None):
    """softmax(Q K^T / sqrt(D) + mask) V, of (B, H, S, D)."""
    if graph.spelling == "none":
        return q
    scores = _scores(graph, q, k, head_size)
    if mask is not None:
        scores = graph.node("Add", scores, mask)
    weights = graph.node("Softmax", scores, axis=-1)
    if graph.spelling == "sdpa":  # rows without a key
        weights = graph.node("Where", graph.node("IsNaN", weights), graph.floats(0.0), weights)
    return graph.node("MatMul", weights, v)


def self_attention(graph, x, width, heads, mask=None, memory=None, memory_width=None, bias=True):
    """Multi-head attention to X, or to MEMORY, with its projections."""
    size = width // heads
    source, source_width = (x, width) if memory is None else (memory, memory_width)
    q = split_heads(graph, graph.linear(x, width, width, bias), heads, size)
    k, v = (split_heads(graph, graph.linear(source, source_width, width, bias), heads, size) for _ in range(2))
    return graph.linear(merge_heads(graph, attention(graph, q, k, v, size, mask), width), width, width)
