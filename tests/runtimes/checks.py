"""What a rewritten model must still say: valid ONNX, and every type and shape that was known."""

import onnx
from onnx import TensorProto, TypeProto


def _types(model):
    """By name, the TypeProtos that the main graph declares or that inference with data propagation gives."""
    try:
        graph = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=False, data_prop=True).graph
    except Exception:  # an operator that inference does not know
        graph = model.graph
    types = {value.name: value.type for value in [*graph.value_info, *graph.input, *graph.output]}
    for tensor in graph.initializer:
        constant = TypeProto()
        constant.tensor_type.elem_type = tensor.data_type
        for size in tensor.dims:
            constant.tensor_type.shape.dim.add().dim_value = size
        types.setdefault(tensor.name, constant)
    return types


def _lost(was, now):
    """What of the tensor type WAS is not in NOW, empty if nothing is. A symbol may be another."""
    if not was.HasField("tensor_type"):
        return "" if was.WhichOneof("value") == now.WhichOneof("value") else "another kind of type"
    one, other = was.tensor_type, now.tensor_type
    if one.elem_type not in (TensorProto.UNDEFINED, other.elem_type):
        return f"element type {other.elem_type} was {one.elem_type}"
    if not one.HasField("shape"):
        return ""
    if not other.HasField("shape"):
        return "has no shape any more"
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in one.shape.dim]
    after = [dim.dim_value if dim.HasField("dim_value") else None for dim in other.shape.dim]
    symbols = [(a.dim_param, b.dim_param) for a, b in zip(one.shape.dim, other.shape.dim)]
    if len(sizes) != len(after):
        return f"rank {len(after)} was {len(sizes)}"
    for axis, (size, new) in enumerate(zip(sizes, after)):
        named, renamed = symbols[axis]
        is_number = size not in (None, 0)  # inference says 0 where it knows nothing, too
        if (is_number and new != size) or (named and not named.startswith("unk__") and new == 0):
            return f"size {new if new is not None else repr(renamed)} of axis {axis} was {size if size is not None else named}"
    return ""


def _complaints(model, path):
    """What ONNX's checker says of MODEL, in PATH, and what inference with data propagation does; by which of them says it."""
    steps = {"checker": lambda: onnx.checker.check_model(str(path), full_check=True),
             "inference": lambda: onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)}
    said = {}
    for step, run in steps.items():
        try:
            run()
        except Exception as error:  # of several kinds
            said[step] = str(error).strip().splitlines()[0]
    return said


def failures(before, before_path, after, path):
    """What the checker says of the model AFTER, in PATH, that it does not say of BEFORE; which values lost what BEFORE said of
    them."""
    complaints = _complaints(after, path)
    same = _complaints(before, before_path) if complaints else {}
    found = [f"is not valid for the {step}: {what}" for step, what in complaints.items() if step not in same]
    known, known_now = _types(before), _types(after)
    for name, now in known_now.items():
        if name in known and (what := _lost(known[name], now)):
            found.append(f"'{name}': {what}")
    alive = {name for node in after.graph.node for name in node.output}
    found += [f"'{name}' has no type any more" for name in known if name in alive and name not in known_now]
    for was, now in zip(before.graph.output, after.graph.output):
        if was.SerializeToString(deterministic=True) != now.SerializeToString(deterministic=True):
            found.append(f"output '{was.name}' is declared otherwise")
    return found
