"""Draws Q, K and V: where they come from, how heads lie, how they are shared, and caches."""
import dataclasses


@dataclasses.dataclass
class Plan:
    """What a site is built with; sizes are expressions of graph.py."""
    heads: object
    key_heads: object
    size: int
    value_size: int
    dtype: str
    form: str            # 4d, 3d, projected, single (no heads)
    cache: str           # none, past-first, new-first, mixed, other-lengths
    length: str = "L"
    keys: str = "S"

    @property
    def total(self):
        return "P+S" if self.cache != "none" else self.keys


def draw_plan(graph):
    random = graph.random
    form = random.choice(["4d", "4d", "3d", "projected", "single"])
    heads = int(random.choice([1, 2, 3, 4, 6]))
    key_heads = heads
    if form != "single" and graph.chance(0.3):
        key_heads = int(random.choice([n for n in range(1, heads + 1) if heads % n == 0]))
    if form == "4d" and graph.chance(0.2):
        heads = "H"
        key_heads = graph.one_or("H") if graph.chance(0.4) else random.choice(["H", 1])
    size = int(random.choice([1, 4, 8, 16]))
    cache = "none"
    if form != "single" and graph.chance(0.35):
        cache = random.choice(["past-first"] * 5 + ["new-first", "mixed", "other-lengths"])
    keys = "S" if cache != "none" or graph.chance(0.5) else "L"
    dtype = random.choice(["f32"] * 6 + ["f16"] * 3 + ["f64"])
    value_size = size if graph.chance(0.7) else int(random.choice([1, 5, 8]))
    plan = Plan(heads, key_heads, size, value_size, dtype, form, cache, keys=keys)
    for text in (f"form={form}", f"heads={heads}/{plan.key_heads}", f"cache={cache}", f"dtype={dtype}", f"keys={keys}"):
        graph.note(text)
    return plan


def hidden(graph, value, probability=0.06):
    """VALUE by way of a node that hides its shape, or its rank, from whoever does not run the model."""
    if not graph.chance(probability):
        return value
    kind = graph.random.choice(["shape-input", "squeeze", "unknown-rank"])
    graph.note(f"hidden={kind}")
    if kind == "squeeze":
        graph.varies_rank = True
        return graph.op("Squeeze", graph.unsqueeze(value, [0]), rank=graph.rank[value])
    axes = next((given.axes for given in graph.inputs if given.name == value), None)
    if axes is None:
        return value
    target = graph.input("target", "i64", [len(axes)], "shape " + ",".join(str(axis) for axis in axes))
    if kind == "unknown-rank":
        graph.inputs[-1].declared = [None]
    return graph.op("Reshape", value, target, rank=graph.rank[value])


def projected(graph, plan, source, features):
    """SOURCE (B, rows, 12) times weights, with or without a bias."""
    weights = graph.random.standard_normal((12, features)) * 0.3
    value = graph.op("MatMul", source, graph.constant(weights, plan.dtype), rank=3)
    if graph.chance(0.5):
        bias = graph.constant(graph.random.standard_normal(features), plan.dtype)
        value = graph.op("Add", *graph.random.permutation([value, bias]).tolist(), rank=3)
    return value


def split_heads(graph, value, heads, size):
    """(B, rows, heads * size) to (B, heads, rows, size)."""
    target = [[0, 0, heads, size], [0, -1, heads, size], [(value, 0), (value, 1), heads, size], [(value, 0), -1, heads, size]]
    return graph.transpose(graph.reshape(value, target[graph.random.integers(4)]), [0, 2, 1, 3])


def new_rows(graph, plan, stem, heads, rows, size, source):
    """(B, heads, rows, size), or (B, rows, size) of form single."""
    if plan.form == "single":
        return graph.input(stem, plan.dtype, ["B", rows, size], "float")
    if plan.form == "4d":
        return hidden(graph, graph.input(stem, plan.dtype, ["B", heads, rows, size], "float"))
    if plan.form == "projected":
        value = projected(graph, plan, source, heads * size)
    else:
        value = graph.input(stem, plan.dtype, ["B", rows, heads * size], "float")
    return split_heads(graph, value, heads, size)


def with_past(graph, plan, value, stem, rows, size, past_first):
    past = hidden(graph, graph.input("past_" + stem, plan.dtype, ["B", plan.key_heads, rows, size], "past"))
    parts = [past, value] if past_first else [value, past]
    present = graph.op("Concat", *parts, axis=int(graph.random.choice([2, -2])))
    if graph.chance(0.5):
        graph.output(present)
    return present


def repeated(graph, value, groups, how):
    """Each head of VALUE (B, heads, rows, size) GROUPS times."""
    if how == "tiled":
        return graph.op("Concat", *[value] * groups, axis=1)
    heads, size = (value, 1), (value, 3)
    wide = graph.unsqueeze(value, [2])
    parts = [graph.size(value, 0), graph.size(*heads), graph.constant([groups], "i64"), graph.size(value, 2), graph.size(*size)]
    if graph.chance(0.5):
        parts = [graph.constant([n], "i64") for n in (1, 1, groups, 1, 1)]
    wide = graph.op("Expand", wide, graph.op("Concat", *parts, axis=0), rank=5)
    count = graph.op("Mul", graph.size(*heads), graph.constant([groups], "i64"))
    target = graph.op("Concat", graph.size(value, 0), count, graph.size(value, 2), graph.size(*size), axis=0)
    return graph.op("Reshape", wide, target, rank=4)


@dataclasses.dataclass
class Operands:
    q: str
    k: str
    v: str
    q_rows: tuple   # (value, axis) whose sizes are those of queries and keys
    k_rows: tuple


def packed(graph, plan):
    """Q, K and V from one input, by Split or by Gather."""
    graph.note("packed")
    plan.value_size = plan.size
    width = plan.heads * plan.size
    if graph.chance(0.5):
        given = graph.input("qkv", plan.dtype, ["B", plan.length, 3 * width], "float")
        if graph.opset >= 13:
            parts = graph.op("Split", given, graph.constant([width] * 3, "i64"), count=3, axis=-1)
        else:
            parts = graph.op("Split", given, count=3, axis=-1, split=[width] * 3)
        q, k, v = (split_heads(graph, part, plan.heads, plan.size) for part in parts)
    else:
        given = graph.input("qkv", plan.dtype, ["B", plan.length, 3, plan.heads, plan.size], "float")
        given = graph.transpose(given, [2, 0, 3, 1, 4])
        q, k, v = (graph.op("Gather", given, graph.constant(i, "i64"), rank=4, axis=0) for i in range(3))
    return Operands(q, k, v, (q, 2), (k, 2))


def draw_operands(graph, plan):
    """Q (B, heads, L, D), K and V (B, heads or a divisor of them that MatMul broadcasts, T, D); without heads in form single."""
    same_rows = plan.keys == plan.length and plan.cache == "none"
    if plan.form == "3d" and same_rows and plan.heads == plan.key_heads and graph.chance(0.25):
        return packed(graph, plan)
    sources = {}
    if plan.form == "projected":
        sources["q"] = graph.input("x", plan.dtype, ["B", plan.length, 12], "float")
        sources["k"] = sources["q"] if same_rows else graph.input("x", plan.dtype, ["B", plan.keys, 12], "float")
    other_lengths = plan.cache == "other-lengths" and plan.form != "projected"
    v_rows, v_past = ("P", "S") if other_lengths else (plan.keys, "P")
    q = new_rows(graph, plan, "q", plan.heads, plan.length, plan.size, sources.get("q"))
    k = new_rows(graph, plan, "k", plan.key_heads, plan.keys, plan.size, sources.get("k"))
    v = new_rows(graph, plan, "v", plan.key_heads, v_rows, plan.value_size, sources.get("k"))
    if plan.cache != "none":
        k_first = plan.cache in ("past-first", "mixed", "other-lengths")
        k = with_past(graph, plan, k, "k", "P", plan.size, k_first)
        v = with_past(graph, plan, v, "v", v_past, plan.value_size, plan.cache in ("past-first", "other-lengths"))
    if isinstance(plan.heads, int) and plan.key_heads not in (1, plan.heads):
        how = graph.random.choice(["interleaved"] * 4 + ["tiled"])
        of_v = how if graph.chance(0.9) else "tiled"
        k, v = (repeated(graph, x, plan.heads // plan.key_heads, h) for x, h in ((k, how), (v, of_v)))
    elif plan.key_heads != plan.heads and isinstance(plan.heads, int) and graph.chance(0.5):
        k, v = (repeated(graph, x, plan.heads, "interleaved") for x in (k, v))
    axis = graph.rank[q] - 2
    return Operands(q, k, v, (q, axis), (k, axis))


def product(graph, operands, plan):
    """Q K^T (..., L, T), as MatMul, Einsum or over merged axes."""
    rank, random = graph.rank[operands.q], graph.random
    way = random.choice(["matmul"] * 5 + ["einsum", "merged", "keys-first"])
    both = float(plan.size) ** -0.25
    if graph.chance(0.1):
        scaled = [graph.op("Mul", x, graph.constant(both, plan.dtype)) for x in (operands.q, operands.k)]
        operands = dataclasses.replace(operands, q=scaled[0], k=scaled[1])
    if way == "einsum" and graph.opset >= 12 and plan.heads == plan.key_heads:
        letters = "bld,bsd->bls" if rank == 3 else "bhld,bhsd->bhls"
        return graph.op("Einsum", operands.q, operands.k, equation=letters)
    perm = list(range(rank - 2)) + [rank - 1, rank - 2]
    if way == "keys-first":
        return graph.transpose(graph.op("MatMul", operands.k, graph.transpose(operands.q, perm)), perm)
    if way == "merged" and rank == 4 and isinstance(plan.heads, int) and plan.heads == plan.key_heads:
        merged = [graph.reshape(x, [-1, (x, 2), plan.size]) for x in (operands.q, operands.k)]
        scores = graph.op("MatMul", merged[0], graph.transpose(merged[1], [0, 2, 1]))
        return graph.reshape(scores, [(operands.q, 0), plan.heads, operands.q_rows, operands.k_rows])
    return graph.op("MatMul", operands.q, graph.transpose(operands.k, perm))


