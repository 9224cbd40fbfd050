"""Draws the softmax, what lies behind it, the product with V, and what of all that is read outside."""


def softmax(graph, value):
    """A softmax over the last axis, in one of its forms; rarely over another."""
    rank, random = graph.rank[value], graph.random
    kind = random.choice(["last", "last", "last", "positive", "written", "shifted", "log", "other", "default"],
                         p=[.25, .2, .13, .12, .08, .12, .03, .03, .04])
    graph.note(f"softmax={kind}")
    if kind == "positive":
        return graph.op("Softmax", value, axis=rank - 1)
    if kind == "written":
        powers = graph.op("Exp", value)
        return graph.op("Div", powers, graph.reduce("ReduceSum", powers, [-1]))
    if kind == "shifted":
        powers = graph.op("Exp", graph.op("Sub", value, graph.reduce("ReduceMax", value, [-1])))
        return graph.op("Div", powers, graph.reduce("ReduceSum", powers, [rank - 1]))
    if kind == "log":
        return graph.op("Exp", graph.op("LogSoftmax", value, axis=-1))
    if kind == "other":
        graph.turned.add(value)
        return graph.op("Softmax", value, axis=rank - 2)
    if kind == "default":
        return graph.op("Softmax", value)
    return graph.op("Softmax", value, axis=-1)


def with_sink(graph, scores):
    """A further column of scores joins the softmax and is cut off behind it."""
    graph.note("sink")
    value = scores.value
    wide = graph.op("Expand", scores.number(0.5), graph.op("Concat", graph.size(value, 0), graph.size(value, 1), graph.size(value, 2),
                                                           graph.constant([1], "i64"), axis=0), rank=4)
    joined = graph.op("Softmax", graph.op("Concat", value, wide, axis=-1), axis=-1)
    last = graph.constant([-1], "i64")
    return graph.op("Slice", joined, graph.constant([0], "i64"), last, last)


def guarded(graph, scores, value):
    """NaN, or rows and keys that are masked, made 0 behind the softmax."""
    zero = graph.constant(0.0, graph.dtype[value])
    if scores.keeps and graph.chance(0.4):
        keep = scores.keeps[graph.random.integers(len(scores.keeps))]
        graph.note("guard=mask")
        return graph.op("Where", keep, value, zero, dtype=graph.dtype[value], rank=graph.rank[value])
    graph.note("guard=nan")
    return graph.op("Where", graph.op("IsNaN", value, dtype="bool"), zero, value, dtype=graph.dtype[value])


def renormalised(graph, scores, value):
    """Probabilities of masked keys made 0, the rest divided by their sum."""
    if not scores.keeps:
        return value
    graph.note("renormalised")
    numbers = graph.cast(scores.keeps[-1], graph.dtype[value])
    kept = graph.op("Mul", value, numbers, rank=graph.rank[value])
    return graph.op("Div", kept, graph.reduce("ReduceSum", kept, [-1]))


def factor(graph, plan, value):
    """Probabilities times a number, a head mask or an input."""
    dtype = graph.dtype[value]
    graph.note("factor")
    if graph.chance(0.4):
        by = graph.constant(float(graph.random.choice([0.5, 2.0, -1.0])), dtype)
    elif graph.rank[value] == 4 and isinstance(plan.heads, int):
        by = graph.constant(graph.random.uniform(0, 2, (plan.heads, 1, 1)), dtype)
    else:
        by = graph.input("factor", dtype, [1], "factor")
    return graph.op("Mul", value, by, rank=graph.rank[value])


def escape(graph, value, what):
    """VALUE is read outside: as an output, or by an operator that leads to one."""
    kind = graph.random.choice(["output", "sum", "shape", "relu", "top"])
    graph.note(f"escape={what}:{kind}")
    if kind == "output":
        graph.output(value)
    elif kind == "sum":
        graph.output(graph.reduce("ReduceSum", value, [-1]))
    elif kind == "shape":
        graph.output(graph.op("Shape", value, dtype="i64", rank=1))
    elif kind == "relu":
        graph.output(graph.op("Relu", value))
    else:
        graph.output(graph.reduce("ReduceMax", value, [graph.rank[value] - 2], keepdims=0))


def draw_probabilities(graph, plan, scores):
    """Probabilities (..., L, T) in the type of V, from SCORES."""
    value = with_sink(graph, scores) if graph.chance(0.06) and scores.has_heads else softmax(graph, scores.value)
    steps = [lambda x: guarded(graph, scores, x)] * graph.chance(0.2) + [lambda x: factor(graph, plan, x)] * graph.chance(0.12)
    steps += [lambda x: renormalised(graph, scores, x)] * graph.chance(0.05)
    for step in steps:
        if graph.chance(0.12):
            escape(graph, value, "before-step")
        value = step(value)
    if graph.chance(0.5):
        value = graph.cast(value, plan.dtype)
    if graph.opset >= 12 and graph.chance(0.08):
        value = graph.op("Dropout", value, graph.constant(0.1, "f32"))
    if graph.chance(0.18):
        escape(graph, value, "probabilities")
    if graph.chance(0.15):
        escape(graph, scores.intermediate[graph.random.integers(len(scores.intermediate))], "scores")
    return graph.cast(value, plan.dtype)


def draw_result(graph, plan, value, v):
    """Probabilities times V, and the layout behind it."""
    if graph.chance(0.03):
        graph.note("probabilities-transposed")
        value = graph.transpose(value, list(range(graph.rank[value] - 2)) + [graph.rank[value] - 1, graph.rank[value] - 2])
    if graph.rank[value] == 4 and graph.chance(0.1) and plan.heads == plan.key_heads:
        result = graph.op("Einsum", value, v, equation="bhls,bhsd->bhld") if graph.opset >= 12 else graph.op("MatMul", value, v)
    else:
        result = graph.op("MatMul", value, v)
    if graph.rank[result] == 4 and graph.chance(0.6):
        result = graph.transpose(result, [0, 2, 1, 3])
        if isinstance(plan.heads, int) and graph.chance(0.8):
            target = [[0, 0, plan.heads * plan.value_size], [(result, 0), (result, 1), -1]]
            result = graph.reshape(result, target[graph.random.integers(2)])
    return result
