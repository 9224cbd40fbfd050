"""Medians, how far they can be trusted, and how far arrays lie apart."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import numpy as np

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """Time of the original divided by that of a result, of pairs measured in turn: above 1 the result is faster.

    Attributes:
        median: of the pairs.
        low, high: where the median lies with a confidence of 95 % (all pairs, if they are fewer than six).
    """

    median: float
    low: float
    high: float


def _outer_ranks(count: int) -> int:
    """How many values at either end of COUNT sorted ones lie outside of the confidence interval of their median."""
    outside, cumulated = 0, 0.0
    while outside < count // 2:
        cumulated += math.comb(count, outside) / 2.0**count
        if 2 * cumulated > 1 - _CONFIDENCE:
            break
        outside += 1
    return max(outside - 1, 0)


def paired_ratio(before: Sequence[float], after: Sequence[float]) -> Ratio:
    """The ratio of BEFORE to AFTER, seconds of the same turns."""
    ratios = sorted(b / a for b, a in zip(before, after))
    outside = _outer_ranks(len(ratios))
    return Ratio(statistics.median(ratios), ratios[outside], ratios[-1 - outside])


@dataclass(frozen=True)
class Difference:
    """How far outputs lie from those of the original.

    Attributes:
        output: name of the one that is furthest off; "": all are equal.
        absolute: largest difference of two elements.
        relative: largest difference divided by the largest magnitude that the original's output has; infinite where shapes, NaN
            or infinities differ, or an output is missing.
        beyond: relative is above the tolerance.
    """

    output: str
    absolute: float
    relative: float
    beyond: bool


_TOLERANCE = {"float16": 2e-2, "float32": 1e-3, "float64": 1e-6}  # of the output's largest magnitude


def _tolerance(before: Any) -> float:
    return _TOLERANCE.get(before.dtype.name, 0.0)  # integers and booleans are equal, or not


def _difference(name: str, before: Any, after: Any, tolerance: float) -> Difference:
    infinite = Difference(name, math.inf, math.inf, True)
    if after is None or before.shape != after.shape:
        return infinite
    a, b = before.astype(np.complex128 if before.dtype.kind == "c" else np.float64), after.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(b[finite]).all():
        return infinite
    if not finite.any():
        return Difference(name, 0.0, 0.0, False)
    absolute, magnitude = float(np.abs(a[finite] - b[finite]).max()), float(np.abs(a[finite]).max())
    relative = absolute / magnitude if magnitude else (math.inf if absolute else 0.0)
    return Difference(name, absolute, relative, relative > tolerance)


def largest_difference(before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float = 0.0) -> Difference:
    """The difference of the output that is furthest beyond its tolerance.

    Args:
        tolerance: relative, of all outputs of floats; 0: 1e-6 for float64, 1e-3 for float32, 2e-2 for float16. Integers and
            booleans must be equal.
    """
    none = Difference("", 0.0, 0.0, False)
    differences = []
    for name, array in before.items():
        allowed = tolerance if tolerance and array.dtype.kind == "f" else _tolerance(array)
        differences.append(_difference(name, array, after.get(name), allowed))
    return max(differences, key=lambda one: (one.beyond, one.relative, one.absolute), default=none)
