"""The kinds of models that people have: paths, onnx, onnx_ir, and what holds one of those (torch.onnx, onnxscript)."""

from __future__ import annotations

import copy
import os
import sys
from typing import Any, Callable, List, Optional, Sequence, Tuple

from ._errors import UsageError

# (path, or folder of external data; bytes or None; further folders of external data)
Source = Tuple[str, Optional[bytes], List[str]]


class GivenModel:
    """A model as the library takes it, and how a new one of its kind is made of bytes."""

    def __init__(self, source: Source, of_bytes: Callable[[bytes], Any], original: Any):
        self.source = source
        self.of_bytes = of_bytes
        self.original = original

    @property
    def in_memory(self) -> bool:
        return self.source[1] is not None


def proto_of_bytes(data: bytes) -> Any:
    """The onnx.ModelProto that DATA is."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("a model in memory is an onnx.ModelProto: install onnx, or give output=PATH") from error
    return onnx.ModelProto.FromString(data)


def _bytes_of(proto: Any) -> bytes:
    try:
        return bytes(proto.SerializeToString(deterministic=True))
    except Exception as error:  # protobuf says it differently in each of its implementations
        raise UsageError(f"the model cannot be serialized: {error}",
                         remedy="protobuf stops at 2 GB: save the model with external data and give its path") from error


def _is_ir_model(model: Any) -> bool:
    ir = sys.modules.get("onnx_ir")  # who has such a model has imported it
    return ir is not None and isinstance(model, ir.Model)


def _data_folder(model: Any) -> str:
    """The folder that external tensors of MODEL, an onnx_ir.Model, lie in."""
    import onnx_ir as ir

    tensors = [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
    folders = {os.fspath(tensor.base_dir) for tensor in tensors if isinstance(tensor, ir.ExternalTensor)}
    if len(folders) > 1:
        raise UsageError("external tensors lie in several folders: " + ", ".join(sorted(folders)),
                         remedy="load them with onnx_ir.external_data.load_to_model")
    return folders.pop() if folders else ""


def _of_ir(model: Any, data_folders: Sequence[str]) -> GivenModel:
    import onnx_ir as ir

    folder = _data_folder(model)

    def of_bytes(data: bytes) -> Any:
        made = ir.from_proto(proto_of_bytes(data))
        for graph in made.graphs():
            ir.external_data.set_base_dir(graph, folder)
        return made

    return GivenModel((folder, _bytes_of(ir.to_proto(model)), list(data_folders)), of_bytes, model)


def _of_program(program: Any, data_folders: Sequence[str]) -> GivenModel:
    given = _of_ir(program.model, data_folders)

    def of_bytes(data: bytes) -> Any:
        made = copy.copy(program)
        made.model = given.of_bytes(data)
        return made

    return GivenModel(given.source, of_bytes, program)


def given_model(model: Any, base_dir: Any = None, data_folders: Sequence[Any] = ()) -> GivenModel:
    """MODEL, of whatever kind. External data of an onnx.ModelProto is looked for in BASE_DIR."""
    folders = [os.fspath(folder) for folder in data_folders]
    if isinstance(model, (str, os.PathLike)):
        return GivenModel((os.fspath(model), None, folders), proto_of_bytes, model)
    if hasattr(model, "SerializeToString") and hasattr(model, "graph"):
        source = (os.fspath(base_dir) if base_dir is not None else "", _bytes_of(model), folders)
        return GivenModel(source, type(model).FromString, model)
    if _is_ir_model(model):
        return _of_ir(model, folders)
    if _is_ir_model(getattr(model, "model", None)):  # torch.onnx.ONNXProgram
        return _of_program(model, folders)
    if hasattr(model, "to_model_proto"):  # onnxscript.OnnxFunction
        return given_model(model.to_model_proto(), base_dir, data_folders)
    raise TypeError(f"a model is a path, an onnx.ModelProto, an onnx_ir.Model, a torch.onnx.ONNXProgram or an "
                    f"onnxscript function, not {type(model).__name__}")
