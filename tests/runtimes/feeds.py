"""Inputs for a model: random numbers, or the fills of a case's FEED lines (docs/cases.md)."""

import ast
import re
import zlib

import numpy as np
import onnx
from onnx import helper

SMALL_SIZES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}
DEFAULTS = {"normal": [], "uniform": [], "ones": [], "zeros": [], "const": [], "iota": [], "bernoulli": [], "values": [],
            "keep": [-np.inf], "rows-one-empty": [-np.inf], "lowest-row": ["lowest"], "causal": [-np.inf]}


class NoInputs(Exception):
    """The model's inputs cannot be made: an input that is no tensor, or of unknown rank."""


def required_inputs(model):
    """The graph's inputs that have no initializer, as ValueInfoProtos."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialized]


def _sizes_of(value):
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        raise NoInputs(f"{value.name} is no tensor of known rank")
    dims = value.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else _name_in(dim) or f"{value.name}[{axis}]" for axis, dim in enumerate(dims)]


def _name_in(dim):
    """The name or expression that DIM has; empty for what tools write for every size that they leave open."""
    return "" if dim.dim_param in ("*", "None") or dim.dim_param.startswith(("?", "-")) else dim.dim_param


def _symbols(size):
    """The names in SIZE, a number or an expression; a text that is no expression is a name."""
    if isinstance(size, int):
        return []
    try:
        tree = ast.parse(size, mode="eval")
    except SyntaxError:
        return [size]
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return names if re.fullmatch(r"[\w\s+*/()-]+", size) else [size]


def _number(size, sizes):
    if isinstance(size, int) or size in sizes:
        return size if isinstance(size, int) else sizes[size]
    number = eval(compile(size, "size", "eval"), {"__builtins__": {}}, sizes)
    if int(number) < 0:
        raise NoInputs(f"size {size} is negative")
    return int(number)


def size_choices(model, given):
    """Sizes of the model's symbols to try one after the other, GIVEN ones as they are: small primes, one symbol the sum of two
    others, all alike."""
    names = list(dict.fromkeys(name for value in required_inputs(model) for size in _sizes_of(value) for name in _symbols(size)))
    primes = {name: SMALL_SIZES[i % len(SMALL_SIZES)] for i, name in enumerate(names)} | given
    yield primes
    for total in names:
        for one in names:
            for other in names[names.index(one) + 1:]:
                if len({total, one, other}) == 3:
                    yield primes | {total: primes[one] + primes[other]} | given
    for alike in (4, 2, 1):
        yield dict.fromkeys(names, alike) | given


def _fill(text, default):
    name, _, arguments = (text or default).partition("(")
    numbers = [word if word == "lowest" else float(word) for word in arguments.rstrip(")").split(",") if word]
    return name, numbers + DEFAULTS[name][max(0, len(numbers) - (name == "keep")):]


def _values(name, numbers, shape, random):
    """The fill as numbers, or as a bool array (true: the key is kept) for masks."""
    columns, rows = (1, *shape)[-1], (1, 1, *shape)[-2]
    index = np.arange(int(np.prod(shape))).reshape(shape)
    column, row = index % max(columns, 1), index // max(columns, 1) % max(rows, 1)
    chance = random.random(shape)
    if name == "normal":
        return random.standard_normal(shape)
    if name == "uniform":
        return numbers[0] + (numbers[1] - numbers[0]) * chance
    if name in ("ones", "zeros", "const"):
        return np.full(shape, {"ones": 1, "zeros": 0}.get(name, (numbers or [0])[0]))
    if name == "iota":
        return index
    if name == "bernoulli":
        return (chance < numbers[0]).astype(float)
    if name == "values":
        return np.resize(np.array(numbers), shape)
    if name == "keep":
        return (column == 0) | (chance < numbers[0])
    if name == "causal":
        return column <= row + columns - rows
    return (index >= columns) & ((column == 0) | (chance < 0.6))


def _lowest(dtype):
    return float(np.finfo(np.float32).min) if dtype.name == "bfloat16" else float(np.finfo(dtype).min)


def filled(value, text, sizes, seed=0):
    """An array for the input VALUE, filled as TEXT (None: normal floats, true, integers 0 or 1)."""
    element = value.type.tensor_type.elem_type
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(element))
    shape = [_number(size, sizes) for size in _sizes_of(value)]
    is_float = element in FLOATS
    default = "normal" if is_float else "ones" if element == onnx.TensorProto.BOOL else "bernoulli(0.5)"
    name, numbers = _fill(text, default)
    if is_float:
        numbers = [_lowest(dtype) if number == "lowest" else number for number in numbers]
    random = np.random.default_rng(zlib.crc32(f"{seed}:{value.name}".encode()))
    values = _values(name, numbers, shape, random)
    if values.dtype == bool and is_float:
        values = np.where(values, 0.0, numbers[-1])
    if name == "uniform" and not is_float:
        values = np.floor(numbers[0] + (numbers[1] - numbers[0] + 1) * random.random(shape))
    if is_float:
        finite = np.clip(values.astype(np.float64), _lowest(dtype), -_lowest(dtype))
        values = np.where(np.isinf(values), values, finite)
    return values.astype(dtype)


def feeds_for(model, fills, sizes, seed=0):
    """Arrays for all inputs of MODEL: FILLS by input name, SIZES by symbol. Raises NoInputs."""
    try:
        return {value.name: filled(value, fills.get(value.name), sizes, seed) for value in required_inputs(model)}
    except (NameError, TypeError, ZeroDivisionError, SyntaxError, ValueError) as error:
        raise NoInputs(str(error)) from error


def with_infinities(model, fills, feed):
    """FEED with infinities in one after the other of those inputs of floats that have no FILLS: in the first feature of all rows,
    and scattered."""
    for value in required_inputs(model):
        array = feed[value.name]
        if value.name in fills or value.type.tensor_type.elem_type not in FLOATS or array.ndim == 0 or array.size == 0:
            continue
        index = np.arange(array.size).reshape(array.shape)
        for is_infinite, sign in ((index % array.shape[-1] == 0, 1), (index % 7 == 3, 1 - 2 * (index % 2))):
            yield feed | {value.name: np.where(is_infinite, sign * np.inf, array.astype(np.float64)).astype(array.dtype)}
