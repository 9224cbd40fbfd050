"""Draws what happens to scores between the product of Q and K and the softmax: scale, softcap, clamps, masks, biases."""
import numpy as np

from graph import NUMPY
from operands import hidden

LOWEST = {name: float(np.finfo(NUMPY[name]).min) for name in ("f16", "f32", "f64")}


class Scores:
    """The walk from the product to the softmax. `value`: the scores so far (..., L, T); `masks`: what was laid over them."""

    def __init__(self, graph, plan, operands, value):
        self.graph, self.plan, self.operands, self.value = graph, plan, operands, value
        self.keeps = []       # bool masks (broadcastable) that are true where a key is kept
        self.intermediate = [value]
        self.stages = []      # the scores behind each step: a row may be without a key there and not in the end

    @property
    def dtype(self):
        return self.graph.dtype[self.value]

    @property
    def has_heads(self):
        return self.graph.rank[self.value] == 4

    def number(self, value):
        return self.graph.constant(value, self.dtype)

    def step(self, kind, *inputs, **attributes):
        self.value = self.graph.op(kind, *inputs, rank=self.graph.rank[self.value], **attributes)
        self.intermediate.append(self.value)

    def sum_with(self, bias):
        order = [self.value, bias] if self.graph.chance(0.6) else [bias, self.value]
        self.step("Add", *order, dtype=self.dtype)

    def fill(self):
        """A number that hides a key, or nearly."""
        choices = [-np.inf, -1e4, -1e9, LOWEST[self.dtype], -1000.0, -65504.0, -10000.5, -3.0]
        weights = np.array([5, 4, 2, 6, 1, 1, 1, 0.5])
        chosen = float(self.graph.random.choice(choices, p=weights / weights.sum()))
        self.graph.note(f"fill={chosen:g}")
        return chosen if self.dtype != "f16" else max(chosen, -65504.0) if np.isfinite(chosen) else chosen

    def mask_axes(self, least_rank=1):
        """Sizes of a mask that broadcasts to the scores, of rank 1 to theirs."""
        graph, random = self.graph, self.graph.random
        full = ["B", self.plan.heads, self.plan.length, self.plan.total] if self.has_heads else ["B", self.plan.length, self.plan.total]
        axes = []
        for position, axis in enumerate(full):
            may_be_one = position < len(full) - 1 or graph.chance(0.05)
            axes.append(random.choice([1, axis, graph.one_or(axis)], p=[0.35, 0.5, 0.15]) if may_be_one and not isinstance(axis, int)
                        else random.choice([1, axis]) if may_be_one else axis)
        axes = [axis if not str(axis).isdigit() else int(axis) for axis in axes]
        return axes[random.integers(0, len(full) - least_rank + 1):] if graph.chance(0.5) else axes


def scale(scores):
    graph, kind = scores.graph, scores.graph.random.choice(["mul", "div", "none", "negative", "tensor", "input"], p=[.4, .3, .1, .04, .08, .08])
    root = float(np.sqrt(scores.plan.size))
    graph.note(f"scale={kind}")
    if kind == "mul":
        scores.step("Mul", scores.value, scores.number(graph.random.choice([1 / root, 0.25, 1.5])))
    elif kind == "div":
        scores.step("Div", scores.value, scores.number(graph.random.choice([root, 3.0])))
    elif kind == "negative":
        scores.step("Mul", scores.value, scores.number(-0.3))
    elif kind == "tensor" and scores.has_heads and isinstance(scores.plan.heads, int):
        scores.step("Mul", scores.value, scores.number(graph.random.uniform(0.2, 2, (scores.plan.heads, 1, 1))))
    elif kind == "input":
        scores.step("Mul", scores.value, graph.input("factor", scores.dtype, [1] * int(graph.random.integers(0, 3)), "float"))


def softcap(scores):
    cap = float(scores.graph.random.choice([5.0, 30.0, 1.0]))
    scores.graph.note("softcap")
    scores.step("Div", scores.value, scores.number(cap))
    scores.step("Tanh", scores.value)
    scores.step("Mul", scores.value, scores.number(cap))


def clamp(scores):
    graph = scores.graph
    if graph.opset < 12:  # whose Clip and Max ONNX Runtime has for few types
        return
    low = float(graph.random.choice([LOWEST[scores.dtype], -1e4, -1000.0, -50.0]))
    graph.note(f"clamp={low:g}")
    if graph.chance(0.5):
        scores.step("Max", scores.value, scores.number(low))
    else:
        high = -low if graph.chance(0.7) else 65504.0
        if scores.dtype == "f16":
            low, high = max(low, -65504.0), min(high, 65504.0)
        scores.step("Clip", scores.value, scores.number(low), scores.number(high))


def where_mask(scores, keep=None, fill=None):
    """Scores where KEEP, else FILL; KEEP: an input of bools if not given."""
    graph = scores.graph
    if keep is None:
        keep = hidden(graph, graph.input("keep", "bool", scores.mask_axes(), "keep"))
    scores.keeps.append(keep)
    fill = scores.number(scores.fill() if fill is None else fill)
    if graph.chance(0.4):
        scores.step("Where", graph.op("Not", keep), fill, scores.value, dtype=scores.dtype)
    else:
        scores.step("Where", keep, scores.value, fill, dtype=scores.dtype)


def additive_keep(scores):
    """A mask of bools or of 0 and 1 turned into a bias: Where(keep, 0, fill) or (1 - keep) * fill."""
    graph, dtype = scores.graph, scores.dtype
    if graph.chance(0.5):
        keep = graph.input("keep", "bool", scores.mask_axes(), "keep")
        scores.keeps.append(keep)
        bias = graph.op("Where", keep, scores.number(0.0), scores.number(scores.fill()), dtype=dtype, rank=graph.rank[keep])
    else:
        numbers = graph.cast(graph.input("ones", graph.random.choice(["i64", "i32", dtype]), scores.mask_axes(), "keep"), dtype)
        fill = scores.fill()
        bias = graph.op("Mul", graph.op("Sub", scores.number(1.0), numbers), scores.number(fill if np.isfinite(fill) else -1e4))
    scores.sum_with(graph.cast(bias, dtype))


def additive_input(scores):
    """A bias that is an input, in the scores' type or cast to it, times a number or as it is."""
    graph = scores.graph
    dtype = graph.random.choice([scores.dtype] * 4 + ["f16", "f32"])
    is_subtracted = graph.chance(0.1)
    coefficient = float(graph.random.choice([2.0, -1.0, 0.125])) if graph.chance(0.2) else 1.0
    role = "gain" if is_subtracted or coefficient < 0 else "bias"  # which hides nothing, and brings nothing hidden back
    bias = graph.cast(hidden(graph, graph.input("bias", dtype, scores.mask_axes(), role)), scores.dtype)
    if coefficient != 1:
        bias = graph.op("Mul", bias, scores.number(coefficient))
    if is_subtracted:
        scores.step("Sub", scores.value, bias, dtype=scores.dtype)
    else:
        scores.sum_with(bias)


def threshold(scores):
    """Keys are kept where an input is above a number."""
    graph = scores.graph
    graph.note("threshold")
    given = graph.input("level", scores.dtype, scores.mask_axes(), "bias")
    keep = graph.op("Greater", given, scores.number(float(graph.random.choice([0.0, 0.3, -1.0]))), dtype="bool")
    where_mask(scores, keep)


def windows(scores):
    """A mask for each of several windows that lie in the batch: scores reshaped to (images, windows, heads, L, T) and back."""
    graph, plan = scores.graph, scores.plan
    if not scores.has_heads or not isinstance(plan.heads, int):
        return
    graph.note("windows")
    rows, keys = scores.operands.q_rows, scores.operands.k_rows
    wide = graph.reshape(scores.value, [-1, 1, plan.heads, rows, keys])
    bias = graph.input("window_mask", scores.dtype, [1, 1, 1, plan.length, plan.total], "bias")
    scores.value = graph.reshape(graph.op("Add", wide, bias), [-1, plan.heads, rows, keys])


def through_half(scores):
    """To half and back: not nothing."""
    graph = scores.graph
    if scores.dtype == "f32":
        graph.note("through-half")
        scores.value = graph.cast(graph.cast(scores.value, "f16"), "f32")


def up_cast(scores, dtype):
    if scores.dtype != dtype:
        scores.graph.note(f"cast={scores.dtype}->{dtype}")
        scores.value = scores.graph.cast(scores.value, dtype)


STEPS = {where_mask: 4, additive_keep: 3, additive_input: 4, threshold: 1, clamp: 1, softcap: 1.2, through_half: 0.4, windows: 0.5}


def draw_scores(graph, plan, operands, value, more_steps):
    """The scores as they enter the softmax. MORE_STEPS: further steps and their weights."""
    steps = {**STEPS, **more_steps}
    scores = Scores(graph, plan, operands, value)
    graph.probes[f"raw{len(graph.probes)}"] = value
    if plan.dtype == "f16" and graph.chance(0.3):
        up_cast(scores, "f32")
    scale(scores)
    weights = np.array(list(steps.values()), float)
    for _ in range(int(graph.random.choice([0, 1, 2, 3], p=[0.15, 0.4, 0.3, 0.15]))):
        chosen = list(steps)[graph.random.choice(len(steps), p=weights / weights.sum())]
        graph.note(chosen.__name__)
        chosen(scores)
        scores.stages.append(scores.value)
        if plan.dtype == "f16" and graph.chance(0.2):
            up_cast(scores, "f32")
    if scores.dtype != "f64" and graph.chance(0.15):
        up_cast(scores, "f32")
    for value in dict.fromkeys([*scores.stages, scores.value]):
        graph.probes[f"scores{len(graph.probes)}"] = value
    return scores
