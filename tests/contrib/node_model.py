"""A model of one node of com.microsoft, its inputs, and what ONNX Runtime makes of it."""
import numpy as np
import onnx
import onnxruntime
from onnx import helper

RANKS = {"output": 3, "present_key": 4, "present_value": 4, "present": 5, "qk": 4}

onnxruntime.set_default_logger_severity(4)


class NodeModel:
    def __init__(self, operator, dtype, **attributes):
        self.operator, self.dtype, self.attributes = operator, np.dtype(dtype), attributes
        self.name = operator
        self.outputs = ["output"]
        self.feeds, self.axes = {}, {}  # by input, in the operator's order; omitted inputs are None
        self.constants = set()
        self.unpacked = None  # feeds in the place of packed ones, for runtimes without a kernel for these
        self.fixed = set()

    def inputs(self, **inputs):
        """NAME=(array, "AXES"): an axis is a letter if its size is symbolic, "." if it is fixed; NAME=None omits it."""
        for name, given in inputs.items():
            self.feeds[name] = None if given is None else np.ascontiguousarray(given[0])
            if given is not None:
                self.axes[name] = given[1].split()

    def fix(self, *letters):
        """Sizes called LETTERS are to be numbers."""
        self.fixed.update(letters)

    def _shape(self, name, feeds, is_symbolic):
        axes = self.axes[name] if feeds is self.feeds else ["."] * feeds[name].ndim
        return [size if axis == "." or axis in self.fixed or not is_symbolic else axis
                for axis, size in zip(axes, feeds[name].shape)]

    def proto(self, is_symbolic=True, unpacks=False):
        feeds = {**self.feeds, **self.unpacked} if unpacks and self.unpacked else self.feeds
        names = [name if feeds[name] is not None else "" for name in feeds]
        while names and not names[-1]:
            names.pop()
        node = helper.make_node(self.operator, names, self.outputs, name="attention", domain="com.microsoft",
                                **self.attributes)
        element = helper.np_dtype_to_tensor_dtype(self.dtype)
        inputs, initializers = [], []
        for name, feed in feeds.items():
            if feed is None:
                continue
            if name in self.constants:
                initializers.append(onnx.numpy_helper.from_array(feed, name))
                continue
            inputs.append(helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(feed.dtype), self._shape(name, feeds, is_symbolic)))
        results = [helper.make_tensor_value_info(name, element, [None] * RANKS[name]) for name in self.outputs if name]
        graph = helper.make_graph([node], "drawn", inputs, results, initializers)
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17),
                                                                     helper.make_opsetid("com.microsoft", 1)])

    def run_inputs(self, unpacks=False):
        feeds = {**self.feeds, **self.unpacked} if unpacks and self.unpacked else self.feeds
        return {name: feed for name, feed in feeds.items() if feed is not None and name not in self.constants}

    def expected(self):
        """ONNX Runtime's outputs, by name."""
        return run(self.proto(False, True).SerializeToString(), self.run_inputs(True))


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))
