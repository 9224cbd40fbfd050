"""How far results may be off, and which differences an assumed precondition covers."""
import numpy as np

MULTIPLE = {"float16": 8, "float32": 4, "float64": 4}  # of the error that the original has itself
UNITS = 16               # in the last place of what a row holds
DEEP = -700.0            # a row whose scores are all below has no key left, or may have none
SMALL_BIAS = {2: 32, 4: 1000, 8: 1000}  # by bytes of a type: what attn-opt takes for small where it adds biases to each other


def rows(array):
    array = np.asarray(array)
    return array.reshape(int(np.prod(array.shape[:-1])), array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)


def magnitude(array, dtype):
    """What a row's rounding errors are relative to: its largest number, fills apart, and at least 1."""
    with np.errstate(invalid="ignore"):
        usual = np.where(np.abs(array) < (1e4 if dtype != np.float16 else 6e4), np.abs(array), 0)
    return np.maximum(np.nanmax(usual, axis=-1, initial=0), 1)


def errors(one, truth):
    """The largest difference of each row where both are finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(rows(one).astype(np.float64) - rows(truth))
    return np.max(np.where(np.isfinite(gap), gap, 0), axis=-1, initial=0)


def near_fill(one, truth, relative):
    """Where numbers as low as fills are equal but for a rounding: these are no measure for the rest of their rows."""
    with np.errstate(invalid="ignore", over="ignore"):
        return (np.abs(truth) > 1e4) & (np.abs(one.astype(np.float64) - truth) <= relative * np.abs(truth))


class Difference:
    """Rows of an output that differ by more than rounding, `bad`; `nan_only`: NaN became a number, nothing else."""

    def __init__(self, name, before, truth, after, others, least_unit=0.0):
        """OTHERS: further results of the original; LEAST_UNIT: of the type that a runtime computes in."""
        self.least_unit = least_unit
        self.name, self.worst, self.nan_only, self.count = name, 0.0, False, 1
        before, after = np.asarray(before), np.asarray(after)
        if before.shape != after.shape or before.dtype != after.dtype:
            self.text = f"{name}: {before.dtype}{before.shape} became {after.dtype}{after.shape}"
            self.bad = np.ones(1, bool)
            return
        if before.dtype.kind != "f":
            self.bad = np.array([not np.array_equal(before, after)])
            self.text = f"{name}: {before.ravel()[:4]} became {after.ravel()[:4]}"
            return
        self.floats(before, rows(truth), after, others)

    def floats(self, before, truth, after, others):
        old, new = rows(before), rows(after)
        self.count = max(len(old), 1)
        own = np.max([errors(one, truth) for one in [before, *others]], axis=0)
        multiple, unit = MULTIPLE[before.dtype.name], max(self.least_unit, float(np.finfo(before.dtype).eps))
        allowed = multiple * own + UNITS * unit * magnitude(truth, before.dtype)
        gap = errors(new, np.where(near_fill(new, truth, 2 * unit), new, truth))
        always = np.all([np.isfinite(rows(one)) for one in [before, *others]], axis=0)
        finite = np.any(always & ~np.isfinite(new), axis=-1)
        infinite = np.any(np.isinf(old) & (old != new), axis=-1)
        from_nan = np.any(np.isnan(old) & ~np.isnan(new) & (new != 0), axis=-1)
        far = (gap > allowed) & ~np.any(np.isnan(old), axis=-1)
        self.bad = finite | infinite | from_nan | far
        self.nan_only = bool(self.bad.any()) and not (finite | infinite | far).any()
        if self.bad.any():
            with np.errstate(over="ignore"):
                times = gap / allowed
            worst = int(np.argmax(np.where(self.bad, np.where(far, times, 1), 0)))
            self.worst = float(times[worst])
            kind = [name for name, rows_ in (("number->inf/nan", finite), ("inf->other", infinite), ("nan->number", from_nan),
                                             ("off", far)) if rows_.any()]
            self.text = (f"{self.name}: {'+'.join(kind)} in {int(self.bad.sum())} of {self.count} rows, {self.worst:.3g} times too far: "
                         f"truth {truth[worst][:3]} before {old[worst][:3]} after {new[worst][:3]}")

    def __bool__(self):
        return bool(self.bad.any())

    @property
    def fraction(self):
        return float(self.bad.sum()) / self.count


def breached(probes, arrays, dtype):
    """What PROBES (scores in double, by kind) say of a feed: how many rows are empty or out of what exp() holds in DTYPE, whether
    scores pass a range, and by how large a sum they were rounded: where biases are small, and fills in rows of nothing else among
    them."""
    deep, out_of_exp, largest, summed, added = 0, 0, 0.0, 0.0, 0.0
    small = SMALL_BIAS[max(np.dtype(dtype).itemsize, 4)]
    is_finite = all(np.isfinite(a).all() for a in arrays)
    for kind, scores in probes.items():
        with np.errstate(invalid="ignore"):
            flat = rows(np.swapaxes(scores, -1, -2) if kind.endswith("turned") else scores)
            if kind.startswith("scores") and flat.size:
                highest = np.max(flat, axis=-1, initial=-np.inf)
                deep += int(np.sum(~(highest > DEEP)))
                out_of_exp += int(np.sum(~(np.abs(highest) < np.log(float(np.finfo(dtype).max) / flat.shape[-1]))))
                summed = max(summed, float(np.max(np.abs(highest), where=np.abs(highest) <= small, initial=0)))
                added = max(added, float(np.max(np.abs(highest), where=np.isfinite(highest), initial=0)))
            if flat.size:
                flat = np.where(flat > DEEP, flat, 0) if kind.startswith("scores") else flat
                largest = max(largest, float(np.nanmax(np.abs(flat), initial=0)))
    finite = is_finite and largest < float(np.finfo(dtype).max)
    return {"eps": float(np.finfo(dtype).eps), "empty": deep, "out of exp": out_of_exp, "largest": largest, "summed": max(summed, largest),
            "added": max(added, largest), "small": SMALL_BIAS[np.dtype(dtype).itemsize], "finite": finite}


def covered(difference, assumed, facts):
    """Does an assumption that the report lists, and this feed breaches, cover DIFFERENCE?"""
    if "sizes-equal" in assumed and difference.worst:  # other numbers; of another shape is wrong
        return True
    if assumed & {"scores-finite", "rows-keep-a-key"} and 2 * facts["largest"] > -facts["fill"] + DEEP:
        return True  # the highest fill does not absorb every score, which both say of it
    if "scores-finite" in assumed and not facts["finite"]:
        return True
    if assumed & {"scores-within-clamp", "exp-in-range", "scores-above-fill"} and facts["largest"] > 60:
        return True
    if "masks-not-negative" in assumed and facts["negative factor"]:
        return True
    if "biases-small" in assumed and facts["added"] > facts["small"]:
        return True
    if "exp-in-range" in assumed and int(difference.bad.sum()) <= facts["out of exp"]:
        return True
    by_row = assumed & {"rows-keep-a-key", "scores-above-fill", "exp-in-range", "scores-within-clamp", "scores-finite"}
    # A product of transposed probabilities adds what an empty row holds to each of its own.
    spread = facts["empty"] > 0 and facts["adds_up_queries"]
    return bool(by_row) and (spread or int(difference.bad.sum()) <= facts["empty"])
