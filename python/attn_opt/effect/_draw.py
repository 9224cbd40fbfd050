"""Arrays that fit a model's inputs."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from .._errors import InvalidModelError, UnsupportedError
from ._declared import Axis, Declared
from ._sizes import new_tokens, past_axis

_IDS = 32  # ids are drawn below it, and below the rows of their table


def _type(one: Declared) -> Any:
    if not hasattr(np, one.type):  # bfloat16, float8 and int4 are not NumPy's
        raise UnsupportedError(f"NumPy has no {one.type} to give to a runtime", f"input '{one.name}'")
    return np.dtype(one.type)


def _mask(one: Declared, shape: Tuple[int, ...]) -> Any:
    """Nothing is masked: ones, or zeros if it is added to the scores (a float of rank 3 or more)."""
    return np.zeros(shape) if one.type.startswith(("float", "bfloat")) and len(shape) > 2 else np.ones(shape)


def _positions(shape: Tuple[int, ...], past: int) -> Any:
    return np.broadcast_to(past + np.arange(shape[-1] if shape else 1), shape or (1,)).reshape(shape)


def _ids(one: Declared, shape: Tuple[int, ...], random: np.random.Generator) -> Any:
    return np.asarray(random.integers(0, min(one.rows or _IDS, _IDS), shape))


def _size(axis: Optional[Axis], sizes: Mapping[str, int], missing: int) -> int:
    return missing if axis is None else sizes[axis] if isinstance(axis, str) else axis


def _shape(one: Declared, sizes: Mapping[str, int]) -> Tuple[int, ...]:
    return tuple(_size(axis, sizes, 0) for axis in one.shape)


def _drawn(one: Declared, shape: Tuple[int, ...], past: int, total: int, random: np.random.Generator) -> Any:
    name = one.name.lower()
    if "mask" in name:
        return _mask(one, shape)
    if one.type == "bool":  # use_cache_branch and the like
        return np.ones(shape)
    if "int" not in one.type:
        return np.asarray(random.standard_normal(shape))
    if "position" in name:
        return _positions(shape, past)
    if re.search(r"seqlens_k", name):  # of GroupQueryAttention: the last key's index
        return np.full(shape, total - 1)
    if re.search(r"total_seq|seq_len|lengths?$", name):
        return np.full(shape, total)
    if re.search(r"token_type|segment", name):
        return np.zeros(shape)
    if re.search(r"to_keep|timestep", name):
        return np.ones(shape)
    return _ids(one, shape, random)


def draw(inputs: Sequence[Declared], sizes: Mapping[str, int], given: Mapping[str, Any], seed: int = 0) -> Dict[str, Any]:
    """An array for each input: floats are normal, ids small, masks hide nothing, positions go on behind the past.

    Args:
        sizes: of the axes that have names.
        given: arrays to take as they are, by name.

    Raises:
        InvalidModelError: GIVEN has a name that no input has. UnsupportedError: a type that NumPy lacks.
    """
    unknown = set(given) - {one.name for one in inputs}
    if unknown:
        raise InvalidModelError(f"the model has no input '{min(unknown)}'", "--inputs")
    random = np.random.default_rng(seed)
    past = _size(past_axis(inputs), sizes, 0)
    total = past + _size(new_tokens(inputs), sizes, 1)
    arrays = {}
    for one in inputs:
        shape = _shape(one, sizes)
        drawn = given[one.name] if one.name in given else _drawn(one, shape, past, total, random).astype(_type(one))
        arrays[one.name] = np.array(drawn, order="C")
    return arrays
