"""Whether outputs after rewriting are as good as those before: relative to the result without rounding."""

import numpy as np

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
ERROR_GROWTH = 4  # times the largest error of the model before, in the same row
UNITS = 8         # in the last place of the largest number of the row
WITHOUT_TRUTH = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}


def _row_largest(array):
    """The largest absolute number of each row of the last axis, which is kept."""
    if array.ndim == 0 or array.size == 0:
        return np.abs(array)
    return np.abs(array).max(axis=-1, keepdims=True)


def _allowed(before, truth, is_exact, kind):
    rounding = UNITS * EPSILON[kind] if is_exact else WITHOUT_TRUTH[kind]
    with np.errstate(over="ignore"):
        return ERROR_GROWTH * _row_largest(before - truth) + rounding * (1 + _row_largest(truth))


def _without_nan(array, where):
    return np.where(where, 0, np.nan_to_num(array, posinf=0, neginf=0))


def difference(before, after, truth=None, is_exact=True):
    """Why AFTER is not as good as BEFORE, empty if it is. TRUTH is the result in double, or (not IS_EXACT) another runtime's; None
    if there is none. What was NaN may be a number: a row without a key is 0 in the operator."""
    before, after = np.asarray(before), np.asarray(after)
    if truth is not None and before.shape != truth.shape == after.shape:
        before = truth.astype(before.dtype)  # the runtime is wrong about the model as it was
    if before.dtype != after.dtype:
        return f"type {after.dtype} was {before.dtype}"
    if before.shape != after.shape:
        return f"shape {list(after.shape)} was {list(before.shape)}"
    kind = before.dtype.name
    if kind not in EPSILON:
        return "" if np.array_equal(before, after) else "other values"
    before, after = before.astype(np.float64), after.astype(np.float64)
    was_nan = np.isnan(before)
    if np.any(np.isnan(after) & ~was_nan):
        return "NaN where there was none"
    infinite = (np.isinf(before) | np.isinf(after)) & ~was_nan
    if np.any(infinite & (before != after)):
        return "other infinities"
    waived = was_nan | infinite
    one, other = _without_nan(before, waived), _without_nan(after, waived)
    true = one if truth is None else _without_nan(np.asarray(truth, np.float64), waived)
    excess = np.where(waived, 0, np.abs(other - true) - _allowed(one, true, is_exact and truth is not None, kind))
    if excess.size == 0 or excess.max() <= 0:
        return ""
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return f"{after[worst]:.6g} at {[int(i) for i in worst]}, was {before[worst]:.6g}, rightly {true[worst]:.6g}"


def differences(before, after, truth=None, is_exact=True):
    """By output name, what difference() says of outputs that differ."""
    found = {}
    for name, array in before.items():
        if name not in after:
            found[name] = "is gone"
            continue
        wanted = truth.get(name) if truth else None
        if np.shape(wanted) != np.shape(after[name]):
            wanted = None
        if what := difference(array, after[name], wanted, is_exact):
            found[name] = what
    return found
