"""Masks and biases that follow from positions: triangles, windows, slopes, tables of distances, lengths, constants."""
import numpy as np

from graph import evaluate
from scores import where_mask


def distance(scores):
    """(L, T) int64: key minus query, counted so that the last key and the last query meet, or from 0."""
    graph = scores.graph
    query, key = (graph.positions(*rows) for rows in (scores.operands.q_rows, scores.operands.k_rows))
    rows = graph.unsqueeze(query, [1])
    if graph.chance(0.6):
        shift = graph.op("Sub", graph.size(*scores.operands.k_rows), graph.size(*scores.operands.q_rows))
        rows = graph.op("Add", rows, shift)
    return graph.op("Sub", graph.unsqueeze(key, [0]), rows)


def causal(scores):
    graph = scores.graph
    graph.note("causal")
    keep = graph.op("LessOrEqual" if graph.opset >= 12 else "Less", distance(scores), graph.constant(0, "i64"), dtype="bool")
    if graph.chance(0.3):
        graph.note("window")
        near = graph.op("Greater", distance(scores), graph.constant(-int(graph.random.integers(1, 4)), "i64"), dtype="bool")
        keep = graph.op("And", keep, near)
    if graph.chance(0.5):
        where_mask(scores, keep)
    else:
        bias = graph.op("Where", keep, scores.number(0.0), scores.number(scores.fill()), dtype=scores.dtype, rank=2)
        scores.keeps.append(keep)
        scores.sum_with(bias)


def alibi(scores):
    """Distances, or positions that are an input, times a slope for each head."""
    graph = scores.graph
    graph.note("alibi")
    if graph.chance(0.3):
        where = graph.unsqueeze(graph.input("position", "i64", [scores.plan.total], "positions"), [0])
    else:
        where = distance(scores)
    numbers = graph.cast(where, scores.dtype)
    if scores.has_heads and isinstance(scores.plan.heads, int):
        slopes = 2.0 ** -np.arange(scores.plan.heads).reshape(-1, 1, 1)
        scores.sum_with(graph.op("Mul", numbers, scores.number(slopes), rank=3))
    else:
        scores.sum_with(graph.op("Mul", numbers, scores.number(0.5)))


def lengths(scores):
    """Keys below a length for each batch element."""
    graph = scores.graph
    graph.note("lengths")
    given = graph.input("lengths", "i64", ["B"], f"lengths {scores.plan.total}")
    key = graph.unsqueeze(graph.positions(*scores.operands.k_rows), [0])
    keep = graph.op("Less", key, graph.unsqueeze(given, [1]), dtype="bool", rank=2)
    where_mask(scores, graph.unsqueeze(keep, [1, 2] if scores.has_heads else [1]))


def table_of_distances(scores):
    """A bias from a table by the distance of key and query, as T5 has it."""
    graph = scores.graph
    if not scores.has_heads or not isinstance(scores.plan.heads, int) or graph.opset < 12:
        return
    graph.note("table")
    near = graph.op("Clip", distance(scores), graph.constant(-4, "i64"), graph.constant(4, "i64"))
    table = graph.constant(graph.random.standard_normal((9, scores.plan.heads)), scores.dtype)
    bias = graph.op("Gather", table, graph.op("Add", near, graph.constant(4, "i64")), rank=3, axis=0)
    bias = graph.transpose(bias, [2, 0, 1])
    scores.sum_with(graph.unsqueeze(bias, [0]) if graph.chance(0.7) else bias)


def sliced_triangle(scores):
    """A constant triangle for the longest sequence there may be, cut to the sizes at hand."""
    graph = scores.graph
    graph.note("triangle")
    table = graph.constant(np.tril(np.ones((1, 1, 16, 16))), "bool")
    total, rows = graph.size(*scores.operands.k_rows), graph.size(*scores.operands.q_rows)
    begin = graph.op("Sub", total, rows) if graph.chance(0.6) else graph.constant([0], "i64")
    cut = graph.op("Slice", table, begin, graph.op("Add", begin, rows), graph.constant([2], "i64"))
    cut = graph.op("Slice", cut, graph.constant([0], "i64"), total, graph.constant([3], "i64"))
    where_mask(scores, cut if scores.has_heads else graph.reshape(cut, [-1, rows_of(scores), keys_of(scores)]))


def rows_of(scores):
    return scores.operands.q_rows


def keys_of(scores):
    return scores.operands.k_rows


def constant_mask(scores):
    """A mask that is a constant, where sizes are: with a row that keeps nothing, at times."""
    graph, plan = scores.graph, scores.plan
    needed = {plan.length, *plan.total.split("+")}
    if not needed <= set(graph.fixed):
        return
    graph.note("constant-mask")
    shape = evaluate(plan.length, graph.fixed), evaluate(plan.total, graph.fixed)
    keep = graph.random.random(shape) < 0.6
    keep[:, :1] = True
    if graph.chance(0.4) and shape[0]:
        keep[graph.random.integers(shape[0])] = False
    if graph.chance(0.5):
        where_mask(scores, graph.constant(keep, "bool"))
    else:
        scores.sum_with(scores.number(np.where(keep, 0.0, scores.fill())))


STEPS = {causal: 3, alibi: 2, lengths: 1, table_of_distances: 1, sliced_triangle: 1, constant_mask: 3}
