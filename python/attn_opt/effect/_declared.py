"""What a model file declares: its inputs, how large the ids are that they may hold, and the bytes it takes."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

from .._errors import InvalidModelError, UnsupportedError

Axis = Union[int, str]  # a size, or the name of one; an axis without either is called INPUT:NUMBER

_COPIES = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten")


@dataclass(frozen=True)
class Declared:
    """An input of a model.

    Attributes:
        name: the input's.
        type: of its elements, as NumPy and ml_dtypes call it ("float32", "bfloat16").
        shape: a size or its name for each axis.
        rows: those of the smallest table that its elements are looked up in; None: in no table that the file holds.
    """

    name: str
    type: str
    shape: Tuple[Axis, ...]
    rows: Optional[int] = None


def _onnx() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise UnsupportedError("the Python package onnx is not installed, which reads what inputs a model has",
                               remedy="pip install onnx") from error


def _load(path: str) -> Any:
    onnx = _onnx()
    try:
        return onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf and the file system say it each in their own way
        raise InvalidModelError(f"cannot be read as ONNX: {error}", path) from error


def _axis(dim: Any, place: str) -> Axis:
    return int(dim.dim_value) if dim.HasField("dim_value") else str(dim.dim_param) or place


def _table_rows(graph: Any) -> Dict[str, int]:
    """Rows of the smallest table that each value of the main graph is looked up in."""
    rows_of = {table.name: int(table.dims[0]) for table in graph.initializer if len(table.dims) > 1}
    found: Dict[str, int] = {}
    for node in reversed(graph.node):  # readers come before what they read
        if node.op_type == "Gather" and node.input[0] in rows_of and all(a.i == 0 for a in node.attribute if a.name == "axis"):
            source, rows = node.input[1], rows_of[node.input[0]]
        elif node.op_type in _COPIES and node.output[0] in found:
            source, rows = node.input[0], found[node.output[0]]
        else:
            continue
        found[source] = min(rows, found.get(source, rows))
    return found


def _declared(value: Any, rows: Optional[int]) -> Declared:
    if value.type.WhichOneof("value") != "tensor_type":
        raise UnsupportedError("it is no tensor; only tensors are drawn", f"input '{value.name}'")
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        raise UnsupportedError("its rank is not declared", f"input '{value.name}'", "give an array with --inputs")
    if tensor.elem_type == _onnx().TensorProto.STRING:
        raise UnsupportedError("it holds strings, which are not drawn", f"input '{value.name}'")
    kind = _onnx().helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    shape = tuple(_axis(dim, f"{value.name}:{axis}") for axis, dim in enumerate(tensor.shape.dim))
    return Declared(value.name, kind, shape, rows)


def declared_inputs(path: str) -> List[Declared]:
    """The inputs of the model at PATH that a run must give.

    Raises:
        InvalidModelError: it cannot be read. UnsupportedError: an input of a kind that is not drawn, or there is no onnx package.
    """
    graph = _load(path).graph
    rows = _table_rows(graph)
    with_default = {tensor.name for tensor in graph.initializer}
    return [_declared(value, rows.get(value.name)) for value in graph.input if value.name not in with_default]


def bytes_of(path: str) -> int:
    """Bytes of the model's file and of all data files that its weights lie in."""
    folder = os.path.dirname(path)
    places = (entry.value for tensor in _load(path).graph.initializer for entry in tensor.external_data if entry.key == "location")
    return sum(os.path.getsize(file) for file in {path, *(os.path.join(folder, place) for place in places)})
