"""A flat ONNX graph under construction, whose element types and ranks are known at each value.

Sizes of inputs are expressions over named sizes ("B", "P+S", 8); each set of feeds gives the names other numbers. How an input
declares them (shared names, a name for each axis, numbers, nothing) is drawn once for a model.
"""
import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ELEMENT = {"f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "bool": TensorProto.BOOL,
           "i64": TensorProto.INT64, "i32": TensorProto.INT32}
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_, "i64": np.int64, "i32": np.int32}
FLOATS = ("f16", "f32", "f64")
NAMES = {"B": "batch", "L": "seq", "S": "keys", "P": "past", "P+S": "past + keys", "H": "heads"}
IR = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}


@dataclasses.dataclass
class Input:
    """An input of the model. ROLE says how it is filled: float, bias, bool, keep, positions, lengths, past."""
    name: str
    dtype: str
    axes: list
    role: str
    declared: list

    def shape(self, sizes):
        return tuple(evaluate(axis, sizes) for axis in self.axes)


def evaluate(axis, sizes):
    """The number that size expression AXIS stands for where SIZES gives the names' numbers."""
    return axis if isinstance(axis, int) else int(eval(axis, {}, sizes))  # expressions are the generator's own


class FlatGraph:
    """Nodes, inputs and constants in order; `dtype` and `rank` of each value by its name."""

    def __init__(self, random, opset):
        self.random, self.opset = random, opset
        self.nodes, self.inputs, self.initializers, self.outputs = [], [], [], []
        self.dtype, self.rank, self.notes = {}, {}, []
        self.varies_rank = False  # a Squeeze takes away whichever axes are 1: no rank may be declared
        self.choices = {}   # a size that is 1 or another size: name -> that size
        self.fixed = {}     # sizes that are numbers in the model
        self.probes = {}    # "scores"/"raw": values that say what a row of scores is like
        self.turned = set()  # scores whose softmax is over the queries: their rows are the last axis but one
        self.naming = random.choice(["shared", "shared", "distinct", "mixed", "unknown"])
        self.count = 0

    def chance(self, probability):
        return self.random.random() < probability

    def note(self, text):
        self.notes.append(text)

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def _declared(self, name, position, axis):
        if isinstance(axis, int):
            return axis
        if axis in self.fixed or all(part in self.fixed for part in axis.split("+")):
            return evaluate(axis, self.fixed)
        naming = self.naming
        if naming == "mixed":
            naming = self.random.choice(["shared", "distinct", "unknown"])
        if naming == "unknown":
            return None
        return NAMES[axis] if naming == "shared" and axis in NAMES else f"{name}_{position}"

    def input(self, stem, dtype, axes, role):
        name = self.fresh(stem)
        declared = [self._declared(name, position, axis) for position, axis in enumerate(axes)]
        self.inputs.append(Input(name, dtype, list(axes), role, declared))
        self.dtype[name], self.rank[name] = dtype, len(axes)
        return name

    def one_or(self, size):
        """A size that is 1 in some feeds and SIZE in others."""
        name = self.fresh("one_or").upper()
        self.choices[name] = size
        return name

    def constant(self, value, dtype):
        """VALUE as an initializer or a Constant node."""
        name, array = self.fresh("c"), np.asarray(value, NUMPY[dtype])
        tensor = numpy_helper.from_array(array, name)
        if self.chance(0.5):
            self.initializers.append(tensor)
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        self.dtype[name], self.rank[name] = dtype, array.ndim
        return name

    def op(self, kind, *inputs, dtype=None, rank=None, count=1, **attributes):
        """The output of a new node (a list of COUNT if that is not 1); DTYPE and RANK: those of its result if not its inputs'."""
        outputs = [self.fresh(kind.lower()) for _ in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, name=f"n_{outputs[0]}", **attributes))
        given = [name for name in inputs if name]
        for output in outputs:
            self.dtype[output] = dtype or self.dtype[given[0]]
            self.rank[output] = rank if rank is not None else max(self.rank[name] for name in given)
        return outputs[0] if count == 1 else outputs

    def cast(self, value, dtype):
        return value if self.dtype[value] == dtype else self.op("Cast", value, dtype=dtype, to=ELEMENT[dtype])

    def _axes(self, kind, value, axes, since, rank, **attributes):
        if self.opset >= since:
            return self.op(kind, value, self.constant(axes, "i64"), rank=rank, **attributes)
        return self.op(kind, value, rank=rank, axes=axes, **attributes)

    def unsqueeze(self, value, axes):
        return self._axes("Unsqueeze", value, axes, 13, self.rank[value] + len(axes))

    def squeeze(self, value, axes):
        return self._axes("Squeeze", value, axes, 13, self.rank[value] - len(axes))

    def reduce(self, kind, value, axes, keepdims=1):
        since = 13 if kind == "ReduceSum" else 18
        rank = self.rank[value] - (0 if keepdims else len(axes))
        return self._axes(kind, value, axes, since, rank, keepdims=keepdims)

    def transpose(self, value, perm):
        return self.op("Transpose", value, perm=perm)

    def size(self, value, axis):
        """A tensor (1) that holds the size of VALUE's axis."""
        shape = self.op("Shape", value, dtype="i64", rank=1)
        return self.op("Gather", shape, self.constant([axis], "i64"), axis=0)

    def reshape(self, value, sizes):
        """SIZES: numbers, or (value, axis) for the size of an axis."""
        if all(isinstance(size, int) for size in sizes):
            target = self.constant(sizes, "i64")
        else:
            parts = [self.constant([size], "i64") if isinstance(size, int) else self.size(*size) for size in sizes]
            target = self.op("Concat", *parts, axis=0)
        return self.op("Reshape", value, target, rank=len(sizes))

    def positions(self, value, axis):
        """0, 1, ... as many as VALUE's axis is long, int64."""
        end = self.op("Squeeze", self.size(value, axis), rank=0) if self.opset >= 13 else self.squeeze(self.size(value, axis), [0])
        return self.op("Range", self.constant(0, "i64"), end, self.constant(1, "i64"), rank=1)

    def output(self, value):
        if value not in self.outputs:
            self.outputs.append(value)

    def model(self, double=False):
        """The flat model; DOUBLE: every float in float64, and the probes as outputs: the truth."""
        outputs = list(self.outputs) + ([p for p in self.probes.values() if p not in self.outputs] if double else [])

        def element(dtype):
            return ELEMENT["f64" if double and dtype in FLOATS else dtype]

        inputs = [helper.make_tensor_value_info(i.name, element(i.dtype), [None] * len(i.axes) if double else i.declared)
                  for i in self.inputs]
        results = [helper.make_tensor_value_info(name, element(self.dtype[name]), [None] * self.rank[name]) for name in outputs]
        nodes, initializers = self.nodes, self.initializers
        if double:
            nodes, initializers = [in_double(node) for node in nodes], [double_tensor(t) for t in initializers]
        graph = helper.make_graph(nodes, "adversary", inputs, results, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR[self.opset])


def double_tensor(tensor):
    array = numpy_helper.to_array(tensor)
    return numpy_helper.from_array(array.astype(np.float64), tensor.name) if array.dtype.kind == "f" else tensor


def in_double(node):
    """NODE with its constants and the types that it casts to in float64."""
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    for attribute in changed.attribute:
        if attribute.name == "to" and attribute.i in (TensorProto.FLOAT, TensorProto.FLOAT16):
            attribute.i = TensorProto.DOUBLE
        if attribute.type == onnx.AttributeProto.TENSOR:
            attribute.t.CopyFrom(double_tensor(attribute.t))
    return changed
