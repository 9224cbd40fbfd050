"""Draws a whole model: one or two sites that may share values, spelled flat or inside functions and control flow."""
import dataclasses

import numpy as np
import onnx

import operands
import positions
import probabilities
import scores as score_steps
from graph import FlatGraph
from wrapping import wrapped

OPSETS = [11, 12, 13, 14, 16, 17, 18, 20, 21, 22, 23, 24]
OPTIONS = [[], ["--target", "ort"], ["--target", "openvino"], ["--opset", "23"], ["--form", "3d"], ["--form", "4d"], ["--opset", "25"]]


@dataclasses.dataclass
class Drawn:
    """MODEL as it is given to the tool; TRUTH: the same numbers, flat and in float64, with the probes as further outputs."""
    seed: int
    model: onnx.ModelProto
    truth: onnx.ModelProto
    graph: FlatGraph
    outputs: list
    probes: dict
    options: list  # of attn-opt


def fix_sizes(graph):
    """Some models have numbers in the place of symbols."""
    if graph.chance(0.25):
        numbers = {"B": [1, 2], "L": [1, 3, 5], "S": [2, 4, 6], "P": [0, 3], "H": [2, 3]}
        kept = [name for name in numbers if graph.chance(0.8)]
        graph.fixed = {name: int(graph.random.choice(numbers[name])) for name in kept}
        graph.note("fixed=" + "".join(graph.fixed))


def site(graph, plan, given, score_value=None):
    """One attention over GIVEN operands; from scores that another made, if any."""
    value = operands.product(graph, given, plan) if score_value is None else score_value
    walk = score_steps.draw_scores(graph, plan, given, value, positions.STEPS)
    weights = probabilities.draw_probabilities(graph, plan, walk)
    return walk, weights, probabilities.draw_result(graph, plan, weights, given.v)


def second_site(graph, plan, given, walk, weights):
    """Another site that shares operands, scores, masks or probabilities with the first."""
    kind = graph.random.choice(["same-qk", "from-scores", "crossing", "same-probabilities"])
    graph.note(f"second={kind}")
    other = operands.draw_operands(graph, dataclasses.replace(plan)) if kind == "same-qk" and graph.chance(0.5) else given
    if kind == "same-qk" or walk.dtype != plan.dtype:
        return site(graph, plan, other)[2]
    if kind == "same-probabilities":
        return probabilities.draw_result(graph, plan, weights, graph.op("Neg", given.v))
    start = walk.intermediate[graph.random.integers(len(walk.intermediate))] if kind == "from-scores" else walk.value
    start = graph.cast(start, plan.dtype)
    if kind == "crossing":
        more = operands.product(graph, dataclasses.replace(given, q=graph.op("Neg", given.q)), plan)
        graph.output(probabilities.draw_result(graph, plan, probabilities.softmax(graph, graph.op("Add", more, start)), given.v))
        start = graph.op("Add", start, more)
    return site(graph, plan, given, start)[2]


def draw_flat(random):
    graph = FlatGraph(random, int(random.choice(OPSETS)))
    graph.note(f"opset={graph.opset}")
    graph.note(f"names={graph.naming}")
    fix_sizes(graph)
    plan = operands.draw_plan(graph)
    given = operands.draw_operands(graph, plan)
    walk, weights, result = site(graph, plan, given)
    graph.output(result)
    if graph.chance(0.2):
        graph.output(second_site(graph, plan, given, walk, weights))
    return graph


def draw_model(seed):
    """The model of SEED: always the same one."""
    random = np.random.default_rng(seed)
    graph = draw_flat(random)
    flat = graph.model()
    model = wrapped(graph, flat)
    if graph.chance(0.3):
        try:
            model = onnx.shape_inference.infer_shapes(model)
            graph.note("inferred")
        except onnx.shape_inference.InferenceError:
            graph.note("not-inferred")
    options = OPTIONS[graph.random.choice(len(OPTIONS), p=[0.76] + [0.04] * 6)]
    graph.note("options=" + " ".join(options))
    probes = {kind + (" turned" if name in graph.turned else ""): name for kind, name in graph.probes.items()}
    return Drawn(seed, model, graph.model(double=True), graph, list(graph.outputs), probes, options)
