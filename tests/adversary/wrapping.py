"""Moves a part of a flat model into a local function, an If or a Loop: the same numbers in another structure."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graph import ELEMENT

DOMAIN = "local"


def wrapped(graph, flat):
    """FLAT, or the same with parts of it moved."""
    model, random = flat, graph.random
    kind = random.choice(["none", "function", "nested", "if", "loop"], p=[0.45, 0.25, 0.1, 0.12, 0.08])
    graph.note(f"wrap={kind}")
    if kind == "none":
        return model
    nodes = list(model.graph.node)
    begin, end = sorted(random.integers(0, len(nodes) + 1, 2).tolist()) if graph.chance(0.6) else (0, len(nodes))
    part = Part(model, graph, begin, end)
    if begin == end or not part.outputs:
        return model
    if kind == "if":
        part.replace(if_node(graph, part))
    elif kind == "loop":
        part.replace(loop_nodes(graph, part))
    else:
        functions = [make_function(graph, part.nodes, part.inputs, part.outputs, "block")]
        if kind == "nested":
            functions = nest(graph, functions[0])
        part.replace([call(graph, functions[-1], part.inputs, part.outputs)])
        model.functions.extend(functions)
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model


class Part:
    """Nodes [BEGIN, END) of MODEL's graph: what they read from elsewhere, and what of theirs is read elsewhere."""

    def __init__(self, model, graph, begin, end):
        self.model, self.begin, self.end = model, begin, end
        nodes = list(model.graph.node)
        self.nodes = nodes[begin:end]
        made = {name for node in self.nodes for name in node.output}
        outside = {name for node in nodes[:begin] + nodes[end:] for name in node.input}
        outside |= {output.name for output in model.graph.output}
        self.inputs = reads(self.nodes)
        self.outputs = [name for node in self.nodes for name in node.output if name in made & outside]
        self.types = graph.dtype
        self.ranks = graph.rank

    def replace(self, nodes):
        kept = list(self.model.graph.node)
        del self.model.graph.node[:]
        self.model.graph.node.extend(kept[:self.begin] + list(nodes) + kept[self.end:])


def reads(nodes):
    """What NODES read and do not make, in order."""
    made = {name for node in nodes for name in node.output}
    return list(dict.fromkeys(name for node in nodes for name in node.input if name and name not in made))


def attribute_of(node):
    """The float of a Constant node of one, else None: it can become an attribute of a function."""
    if node.op_type != "Constant" or node.attribute[0].name != "value":
        return None
    array = numpy_helper.to_array(node.attribute[0].t)
    return float(array) if array.dtype == np.float32 and array.ndim == 0 else None


def make_function(graph, nodes, inputs, outputs, name):
    """A function of NODES in which some constants and axes are attributes: with defaults, which calls may leave to the function."""
    body, defaults, given = [], [], {}
    for node in nodes:
        copy = type(node)()
        copy.CopyFrom(node)
        number = attribute_of(copy)
        if number is not None and graph.opset >= 12 and graph.chance(0.6):
            key = f"number{len(defaults) + len(given)}"
            del copy.attribute[:]
            copy.attribute.append(reference("value_float", key, helper.make_attribute(key, 1.0).type))
            is_default = graph.chance(0.6)
            defaults.append(helper.make_attribute(key, number if is_default else number * 0.5 + 1))
            if not is_default:
                given[key] = number
        axis = next((a for a in copy.attribute if a.name == "axis" and copy.op_type == "Softmax"), None)
        if axis is not None and graph.chance(0.5):
            key = f"axis{len(defaults) + len(given)}"
            defaults.append(helper.make_attribute(key, axis.i))
            axis.CopyFrom(reference("axis", key, axis.type))
        body.append(copy)
    imports = [helper.make_opsetid("", graph.opset), helper.make_opsetid(DOMAIN, 1)]
    function = helper.make_function(DOMAIN, name, inputs, outputs, body, imports, attribute_protos=defaults)
    graph.given = {**getattr(graph, "given", {}), name: given}
    return function


def reference(name, key, kind):
    attribute = helper.make_attribute(name, 0)
    attribute.ClearField("i")
    attribute.type, attribute.ref_attr_name = kind, key
    return attribute


def call(graph, function, inputs, outputs):
    return helper.make_node(function.name, inputs, outputs, name=graph.fresh("call"), domain=DOMAIN,
                            **graph.given.get(function.name, {}))


def nest(graph, function):
    """FUNCTION with a part of its body in a function of its own; both, the inner one first."""
    nodes = list(function.node)
    plain = [i for i, node in enumerate(nodes) if any(a.ref_attr_name for a in node.attribute)]
    begin, end = sorted(graph.random.integers(0, len(nodes) + 1, 2).tolist())
    if begin == end or any(begin <= i < end for i in plain):
        return [function]
    part, made = nodes[begin:end], {name for node in nodes[begin:end] for name in node.output}
    outside = {name for node in nodes[:begin] + nodes[end:] for name in node.input} | set(function.output)
    outputs = [name for node in part for name in node.output if name in made & outside]
    if not outputs:
        return [function]
    inner = make_function(graph, part, reads(part), outputs, "inner")
    inside = call(graph, inner, reads(part), outputs)
    del function.node[:]
    function.node.extend(nodes[:begin] + [inside] + nodes[end:])
    return [inner, function]


def body_outputs(graph, part, suffix):
    """Identity nodes that give the part's outputs names of a body's own, and what they make, typed."""
    names = [name + suffix for name in part.outputs]
    copies = [helper.make_node("Identity", [old], [new]) for old, new in zip(part.outputs, names)]
    shapes = [None if graph.varies_rank else [None] * graph.rank[old] for old in part.outputs]
    infos = [helper.make_tensor_value_info(new, ELEMENT[graph.dtype[old]], shape)
             for old, new, shape in zip(part.outputs, names, shapes)]
    return copies, infos


def renamed(nodes, values, suffix):
    """NODES with SUFFIX behind the names of VALUES."""
    copies = []
    for node in nodes:
        copy = type(node)()
        copy.CopyFrom(node)
        for names in (copy.input, copy.output):
            names[:] = [name + suffix if name in values else name for name in names]
        copies.append(copy)
    return copies


def if_node(graph, part):
    """An If with the part in both branches, or in one that is always taken."""
    branches = {}
    for branch in ("then_branch", "else_branch"):
        copies, infos = body_outputs(graph, part, "_" + branch)
        made = {name for node in part.nodes for name in node.output}
        inner = part.nodes if branch == "then_branch" else renamed(part.nodes, made, "_e")
        for copy in copies if branch == "else_branch" else []:
            copy.input[0] += "_e"
        branches[branch] = helper.make_graph([*inner, *copies], branch, [], infos)
    condition = helper.make_node("Constant", [], ["condition"], value=numpy_helper.from_array(np.array(graph.chance(0.5))))
    return [condition, helper.make_node("If", ["condition"], part.outputs, name="n_if", **branches)]


def loop_nodes(graph, part):
    """A Loop of one or two turns that computes the part anew in each. What that reads may be carried as it is."""
    copies, infos = body_outputs(graph, part, "_loop")
    carried = [name for name in part.inputs if graph.rank.get(name) and graph.chance(0.3)]
    nodes = renamed(part.nodes, carried, "_carried")
    copies += [helper.make_node("Identity", [name + "_carried"], [name + "_next"]) for name in carried]
    go_on = helper.make_node("Identity", ["go_in"], ["go_out"])
    seeds, inputs = [], [helper.make_tensor_value_info("turn", TensorProto.INT64, []),
                         helper.make_tensor_value_info("go_in", TensorProto.BOOL, [])]
    for old in part.outputs:
        inputs.append(helper.make_tensor_value_info(old + "_before", ELEMENT[graph.dtype[old]], None))
        empty = np.zeros([0] * graph.rank[old], helper.tensor_dtype_to_np_dtype(ELEMENT[graph.dtype[old]]))
        seeds.append(helper.make_node("Constant", [], [old + "_seed"], value=numpy_helper.from_array(empty)))
    for name in carried:
        inputs.append(helper.make_tensor_value_info(name + "_carried", ELEMENT[graph.dtype[name]], None))
        infos.append(helper.make_tensor_value_info(name + "_next", ELEMENT[graph.dtype[name]], None))
    results = [helper.make_tensor_value_info("go_out", TensorProto.BOOL, []), *infos]
    body = helper.make_graph([*nodes, *copies, go_on], "turns", inputs, results)
    count = helper.make_node("Constant", [], ["turns"], value=numpy_helper.from_array(np.array(graph.random.integers(1, 3))))
    names = ["turns", "", *[old + "_seed" for old in part.outputs], *carried]
    ends = [*part.outputs, *[name + "_last" for name in carried]]
    return [count, *seeds, helper.make_node("Loop", names, ends, name="n_loop", body=body)]
