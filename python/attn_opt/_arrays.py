"""NumPy arrays and the element types of ONNX."""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

import numpy as np

from ._errors import UsageError

_NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "str": 8, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19,
    "float8_e5m2fnuz": 20, "uint4": 21, "int4": 22, "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "uint2": 25, "int2": 26,
}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_STRING = _NUMBERS["str"]
# A tensor holds the code of an element in a byte of its own: these have so many bits.
_CODE_BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}


def type_name(number: int) -> str:
    return _NAMES.get(number, f"type {number}")


def type_number(name: Any) -> int:
    name = name if isinstance(name, str) else np.dtype(name).name
    if name not in _NUMBERS:
        raise UsageError(f"there is no element type '{name}'", remedy="they are called as in NumPy: float32, bfloat16, ...")
    return _NUMBERS[name]


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # NumPy itself has none of these

        of_ml_dtypes: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return of_ml_dtypes


def array(data: np.ndarray, number: int, dims: Sequence[int]) -> np.ndarray:
    """The array of DIMS and the type NUMBER whose bytes are DATA."""
    name = type_name(number)
    try:
        dtype = _dtype(name)
    except (ImportError, AttributeError):
        dtype = np.dtype(f"V{data.size // max(int(np.prod(dims)), 1) or 1}")
    if name in ("int4", "int2"):  # ml_dtypes has them with the sign in front
        half = 1 << (_CODE_BITS[name] - 1)
        data = (((data ^ half).astype(np.int16) - half) & 0xFF).astype(np.uint8)
    return data.view(dtype).reshape(tuple(dims))


def strings(elements: List[bytes], dims: Sequence[int]) -> np.ndarray:
    made = np.empty(len(elements), dtype=object)
    made[:] = [element.decode("utf-8", "replace") for element in elements]
    return made.reshape(tuple(dims))


def is_sequence(given: Any) -> bool:
    """True for a list of arrays; a list of numbers, of strings or of lists of such is one array."""
    return isinstance(given, list) and all(hasattr(one, "__array__") and not isinstance(one, np.generic) for one in given)


def parts(given: Any, name: str) -> Tuple[int, List[int], Any]:
    """(type, dims, bytes as a flat array, or a list of bytes for strings) of GIVEN, which is called NAME."""
    made = np.asarray(given)
    dims = list(made.shape)
    if made.dtype.kind in "OUS":
        elements = [one if isinstance(one, bytes) else str(one).encode() for one in made.reshape(-1).tolist()]
        return _STRING, dims, elements
    if made.dtype.name not in _NUMBERS:
        raise UsageError(f"'{name}' is an array of {made.dtype}, which ONNX does not have")
    flat = np.ascontiguousarray(made.astype(made.dtype.newbyteorder("="), copy=False)).reshape(-1).view(np.uint8)
    if made.dtype.name in _CODE_BITS:
        flat = flat & np.uint8((1 << _CODE_BITS[made.dtype.name]) - 1)
    return _NUMBERS[made.dtype.name], dims, flat
