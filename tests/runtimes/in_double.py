"""A model with all floats in double: what the numbers would be without rounding."""

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

HALVES_AND_FLOAT = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}
TYPE_ATTRIBUTES = {"to", "dtype", "softmax_precision", "stash_type", "output_dtype"}


def array_in_double(array):
    """ARRAY as float64 if it holds floats of another type."""
    is_float = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    return array.astype(np.float64) if is_float else array


def _widen_tensor(tensor, folder):
    if tensor.data_type in HALVES_AND_FLOAT:
        array = numpy_helper.to_array(tensor, folder).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _widen_type(type_proto):
    if type_proto.HasField("tensor_type") and type_proto.tensor_type.elem_type in HALVES_AND_FLOAT:
        type_proto.tensor_type.elem_type = TensorProto.DOUBLE


def _widen_nodes(nodes, folder):
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                _widen_tensor(attribute.t, folder)
            if attribute.type == AttributeProto.GRAPH:
                _widen_graph(attribute.g, folder)
            for graph in attribute.graphs:
                _widen_graph(graph, folder)
            if attribute.name in TYPE_ATTRIBUTES and attribute.i in HALVES_AND_FLOAT:
                attribute.i = TensorProto.DOUBLE
        _widen_float_constants(node)


def _widen_float_constants(node):
    """Constant's value_float(s) make float: they become tensors of double."""
    for attribute in node.attribute if node.op_type == "Constant" else ():
        if attribute.name in ("value_float", "value_floats"):
            array = np.array(attribute.f if attribute.name == "value_float" else list(attribute.floats), np.float64)
            attribute.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(array)))
    if node.op_type == "ConstantOfShape" and not node.attribute:
        node.attribute.append(onnx.helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))


def _widen_graph(graph, folder):
    for tensor in graph.initializer:
        _widen_tensor(tensor, folder)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        _widen_type(value.type)
    _widen_nodes(graph.node, folder)


def model_in_double(model, folder=""):
    """A copy of MODEL that computes in double; FOLDER has its external data."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    _widen_graph(wide.graph, folder)
    for function in wide.functions:
        _widen_nodes(function.node, folder)
        for value in function.value_info:
            _widen_type(value.type)
    return wide
