"""Sets of inputs that are hard on a rewrite: large biases, empty rows, the model's own constants, sizes of 0, 1 and 2."""
import dataclasses

import numpy as np
from onnx import numpy_helper

from graph import NUMPY, evaluate

DRAWN_AS_FLOATS = ("float", "past", "factor")  # roles of inputs
LARGE = 300  # a bias beyond it brings back what a fill hides
PLAIN = {"B": 2, "L": 3, "S": 4, "P": 3, "H": 3}
SIZES = [PLAIN, {"B": 1, "L": 1, "S": 5, "P": 2, "H": 2}, {"B": 3, "L": 4, "S": 4, "P": 0, "H": 1},
         {"B": 2, "L": 2, "S": 1, "P": 1, "H": 4}, {"B": 2, "L": 7, "S": 3, "P": 5, "H": 2}]
KINDS = ["plain", "plain", "large-bias", "large-scores", "empty-rows", "nothing-kept", "constants", "special", "plain", "ones",
         "full", "zero"]


@dataclasses.dataclass
class Feed:
    kind: str
    sizes: dict
    arrays: dict  # by input, as the model declares them

    def in_double(self):
        return {name: a.astype(np.float64) if a.dtype.kind == "f" else a for name, a in self.arrays.items()}


def pool_of(model):
    """Floats that stand in MODEL (a flat one in float64), and what is next to them."""
    tensors = list(model.graph.initializer) + [a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute]
    numbers = {float(x) for t in tensors for x in numpy_helper.to_array(t).ravel()[:8] if numpy_helper.to_array(t).dtype.kind == "f"}
    return sorted({number for number in numbers if number < LARGE} | {0.0, -1e4, 1.0})


def near(random, numbers, dtype, shape):
    """NUMBERS at random, some of them one unit in the last place off."""
    kind, lowest = NUMPY[dtype], np.finfo(NUMPY[dtype]).min
    with np.errstate(over="ignore"):
        chosen = random.choice(np.array(numbers), shape).astype(kind)
    chosen = np.where(np.isposinf(chosen), kind(1), chosen)
    step = random.integers(-1, 2, shape)
    with np.errstate(over="ignore"):
        moved = np.where(step == 0, chosen, np.nextafter(chosen, np.where(step > 0, kind(np.inf), kind(-np.inf)), dtype=kind))
    return np.where(moved < lowest, chosen, moved).astype(kind)


def bias(random, kind, dtype, shape, pool):
    lowest = float(np.finfo(NUMPY[dtype]).min)
    normal = random.standard_normal(shape)
    if kind == "large-bias":
        return normal * 300 if random.random() < 0.5 else -np.arange(shape[-1] if shape else 1) * 37.5 + 0 * normal
    if kind == "constants":
        return near(random, pool, dtype, shape)
    if kind in ("special", "empty-rows"):
        values = [-np.inf, lowest, lowest / 2, -1e4, 0.0, 2.5] if kind == "special" else [0.0, 0.0, -np.inf]
        drawn = random.choice(values, shape)
        if kind == "empty-rows" and drawn.ndim:
            drawn.reshape(-1, drawn.shape[-1])[:1] = random.choice([-np.inf, lowest, -1e4])
        return drawn
    return np.where(random.random(shape) < 0.4, lowest, 0) if kind == "nothing-kept" else normal


def keep(random, kind, shape):
    kept = random.random(shape) < 0.7
    if kind == "nothing-kept":
        return kept & False
    if kind == "full":
        return kept | True
    if kept.ndim and kept.size:
        rows = kept.reshape(-1, kept.shape[-1])
        rows[:, 0] = True
        if kind == "empty-rows":
            rows[random.integers(len(rows))] = False
    return kept


def contents(random, kind, given, sizes, pool):
    shape, dtype = given.shape(sizes), NUMPY[given.dtype]
    with np.errstate(over="ignore"):
        if given.role == "gain":
            kind = kind if kind == "large-bias" else "plain"
        if given.role in ("bias", "gain"):
            return np.asarray(bias(random, kind, given.dtype, shape, pool)).astype(dtype)
        if given.role == "keep":
            return np.asarray(keep(random, kind, shape)).astype(dtype)
        if given.role == "positions":
            return (np.arange(shape[0]) + (random.integers(0, 2000) if kind in ("large-bias", "special") else 0)).astype(dtype)
        if given.role.startswith("shape"):
            return np.array([evaluate(axis if not axis.isdigit() else int(axis), sizes) for axis in given.role[6:].split(",")], np.int64)
        if given.role.startswith("lengths"):
            total = evaluate(given.role.split()[1], sizes)
            drawn = {"nothing-kept": 0, "full": total, "special": total + 2}.get(kind)
            least = min(total, kind != "empty-rows")
            return np.full(shape, drawn) if drawn is not None else random.integers(least, total + 1, shape)
        return (random.standard_normal(shape) * (12 if kind == "large-scores" else 1)).astype(dtype)


def sizes_of(random, kind, position, graph):
    sizes = dict(SIZES[position % len(SIZES)] if position else PLAIN)
    if kind == "zero":
        sizes[str(random.choice(["B", "L", "S"]))] = 0
    sizes.update(graph.fixed)
    for name, full in graph.choices.items():
        is_one = {"ones": True, "full": False}.get(kind, random.random() < 0.5)
        whole = evaluate(full, sizes)
        sizes[name] = 1 if is_one else whole
    return sizes


def draw_feeds(drawn):
    """The feeds of a drawn model, the same ones each time."""
    random = np.random.default_rng(drawn.seed + 1_000_000_007)
    pool, feeds = pool_of(drawn.truth), []
    for position, kind in enumerate(KINDS):
        sizes = sizes_of(random, kind, position, drawn.graph)
        arrays = {given.name: contents(random, kind, given, sizes, pool) for given in drawn.graph.inputs}
        feeds.append(Feed(kind, sizes, arrays))
    return feeds


def jittered(random, feed, graph):
    """FEED with Q, K, V off by a rounding each, in the least type that GRAPH rounds to: how far the results may move."""
    arrays = dict(feed.arrays)
    least = float(np.finfo(np.float16).eps) if "through-half" in graph.notes else 0.0
    for given in graph.inputs:
        if given.role in DRAWN_AS_FLOATS:
            array = arrays[given.name]
            off = random.integers(-1, 2, array.shape) * max(least, float(np.finfo(array.dtype).eps))
            arrays[given.name] = (array * (1 + off)).astype(array.dtype)
    return Feed(feed.kind, feed.sizes, arrays)
