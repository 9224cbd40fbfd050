"""Models whose attention lies in functions, before and after attn-opt, by ONNX Runtime and ONNX's reference evaluator.

    functions_test.py ATTN_OPT SOURCE_FOLDER [MODELS]

Nodes of the flat models in testdata/cases/softmax_attention are put into functions at random: in one call or nested ones, attributes as
references whose values the calls give, or the functions' defaults, in branches too. Both runners must give the same numbers before and
after, and as much must be fused as of the flat model. Written-out cases stand beside them.
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnxruntime
import onnxscript
from onnx import helper
from onnxscript import opset17 as op

own = onnxscript.values.Opset("own", 1)


@onnxscript.script(own)
def block(q, k, v, slope: float = 0.25):
    scores = op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2]))
    scaled = op.Mul(scores, op.Constant(value_float=slope))
    return op.MatMul(op.Softmax(scaled, axis=-1), v)


@onnxscript.script(own)
def over_queries(q, k, v, axis: int = 2):
    scores = op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2]))
    return op.MatMul(op.Softmax(scores, axis=axis), v)


SHAPE = [1, 2, 3, 4]
OVERLOADS = """<ir_version: 10, opset_import: ["" : 17, "own" : 1]>
g (float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,2,3,4] y, float[1,2,3,4] z) {
  y = own.block:small (q, k, v)
  z, unused = own.block:large (y, k, v)
}
""" + "".join(f"""<domain: "own", overload: "{name}", opset_import: ["" : 17]>
block <slope: float = {slope}> (q, k, v) => (out, probabilities) {{
  factor = Constant <value_float: float = @slope> ()
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  scores = MatMul (q, kt)
  scaled = Mul (scores, factor)
  probabilities = Softmax <axis = -1> (scaled)
  out = MatMul (probabilities, v)
}}
""" for name, slope in (("small", 0.25), ("large", 3.0)))


CONDITION = """<ir_version: 10, opset_import: ["" : 17, "own" : 1]>
g (float[batch,1,2,3,8] q, float[batch,2,8,5] k, float[batch,2,5,8] v) => (float[batch,2,3,8] y)
<int64 one = {1}, int64[1] axis = {1}> {
  sizes = Shape (q)
  is_one = own.is_of_one <of = 0> (sizes, one)
  p = If (is_one) <
    then_branch = squeezed () => (a) { heads = Squeeze (q, axis) scores = MatMul (heads, k) a = Softmax <axis = -1> (scores) },
    else_branch = kept () => (b) { b = Softmax <axis = -1> (q) }
  >
  y = MatMul (p, v)
}
<domain: "own", opset_import: ["" : 17]>
is_of_one <of> (sizes, one) => (is_one) { size = Gather <axis: int = @of> (sizes, one) is_one = Equal (size, one) }
"""


def model_of(functions, calls):
    """CALLS: (function, attributes), each on what the one before gives."""
    nodes = [helper.make_node(function.name, [f"x{i}", "k", "v"], [f"x{i + 1}"], domain="own", **attributes)
             for i, (function, attributes) in enumerate(calls)]
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, SHAPE) for name in ("x0", "k", "v")]
    output = helper.make_tensor_value_info(f"x{len(calls)}", onnx.TensorProto.FLOAT, SHAPE)
    return helper.make_model(helper.make_graph(nodes, "g", values, [output]), ir_version=10,
                             functions=[function.to_function_proto() for function in functions],
                             opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)])


def written_out():
    """(name, model, number of sites)"""
    yield "defaults", model_of([block], [(block, {}), (block, {"slope": 0.5})]), 2
    yield "default axis of queries", model_of([over_queries], [(over_queries, {})]), 0
    yield "given axis of keys", model_of([over_queries], [(over_queries, {"axis": 3})]), 1
    yield "overloads", onnx.parser.parse_model(OVERLOADS), 2
    yield "condition of a branch", onnx.parser.parse_model(CONDITION), 1


REFERRED = {onnx.AttributeProto.INT: lambda draw: draw.randint(-1, 1), onnx.AttributeProto.FLOAT: lambda draw: draw.random(),
            onnx.AttributeProto.INTS: lambda draw: [0]}


class Folder:
    """Folds nodes of a flat model into functions."""

    def __init__(self, model, seed):
        self.model, self.draw, self.count = onnx.ModelProto(), random.Random(seed), 0
        self.model.CopyFrom(model)

    def refer(self, node, function, call):
        """Attributes of NODE become references: their values are CALL's, or FUNCTION's defaults that CALL leaves out."""
        for attribute in node.attribute:
            if attribute.type not in REFERRED or attribute.ref_attr_name or self.draw.random() < 0.3:
                continue
            name = f"a{len(function.attribute_proto) + len(function.attribute)}"
            value = helper.get_attribute_value(attribute)
            form = self.draw.choice(["default", "given", "overridden"])
            wrong = REFERRED[attribute.type](self.draw)
            if form != "given":
                function.attribute_proto.append(helper.make_attribute(name, value if form == "default" else wrong, attr_type=attribute.type))
            else:
                function.attribute.append(name)
            if form != "default":
                call.attribute.append(helper.make_attribute(name, value, attr_type=attribute.type))
            kind, own_name = attribute.type, attribute.name
            attribute.Clear()
            attribute.name, attribute.type, attribute.ref_attr_name = own_name, kind, name

    def fold(self, nodes, wanted):
        """NODES, a part of a graph that WANTED of is read outside, as a call."""
        function = self.model.functions.add()
        self.count += 1
        function.name, function.domain = f"f{self.count}", "own"
        function.opset_import.extend(self.model.opset_import)
        made = {name for node in nodes for name in node.output if name}
        reads = dict.fromkeys(name for node in nodes for name in node.input if name and name not in made)
        call = onnx.NodeProto(op_type=function.name, domain="own", input=reads, output=[name for name in made if name in wanted])
        function.input.extend(reads)
        function.output.extend(call.output)
        if self.draw.random() < 0.1 and reads:  # handed through, read by nobody or by those that read it anyway
            function.output.append(next(iter(reads)))
        for node in nodes:
            self.refer(node, function, call)
        function.node.extend(nodes)
        return call

    def run(self):
        graph = self.model.graph
        if not any(imported.domain == "own" for imported in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid("own", 1))
        for _ in range(self.draw.randint(1, 4)):
            nodes = list(graph.node)
            first = self.draw.randrange(len(nodes))
            last = self.draw.randint(first + 1, len(nodes))
            if any(attribute.HasField("g") for node in nodes[first:last] for attribute in node.attribute):
                continue
            wanted = {name for node in nodes[:first] + nodes[last:] for name in reads_of(node)} | {output.name for output in graph.output}
            call = self.fold(nodes[first:last], wanted)
            del graph.node[:]
            graph.node.extend(nodes[:first] + [call] + nodes[last:])
        del graph.value_info[:]
        return self.model


def reads_of(node):
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            names |= {name for inner in attribute.g.node for name in reads_of(inner)} | {output.name for output in attribute.g.output}
    return names


def inputs_of(model, seed, masks=()):
    """Drawn inputs, ones for booleans and MASKS; sizes of the same name are equal. None if a type is not drawn here."""
    draw, sizes, feeds = np.random.default_rng(seed), {}, {}
    initializers = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in initializers:
            continue
        if not value.type.HasField("tensor_type"):
            return None
        kind = value.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else sizes.setdefault(dim.dim_param, 2 + len(sizes) % 3)
                 for dim in kind.shape.dim]
        if value.name in masks:
            feeds[value.name] = np.ones(shape, helper.tensor_dtype_to_np_dtype(kind.elem_type))
        elif kind.elem_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
            feeds[value.name] = draw.standard_normal(shape).astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
        elif kind.elem_type == onnx.TensorProto.BOOL:
            feeds[value.name] = np.ones(shape, bool)
        else:
            return None
    return feeds


def by_runtime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def by_reference(model, feeds):
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)


def results(run, model, feeds):
    """None if RUN cannot run MODEL on FEEDS."""
    try:
        return run(model, feeds)
    except Exception:
        return None


def fused(attn_opt, model, folder):
    """MODEL as attn-opt makes it, and the number of Attention nodes in it."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    onnx.save(model, before)
    done = subprocess.run([attn_opt, before, "-o", after], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = onnx.load(after)
    nodes = list(made.graph.node) + [node for function in made.functions for node in function.node]
    return made, sum(node.op_type == "Attention" and node.domain == "" for node in nodes)


def is_alike(one, other, least_tolerance):
    tolerance = max(least_tolerance, 2e-2 if one.dtype == np.float16 else 1e-4)
    is_number = ~np.isnan(one)  # a row without a key is NaN in the model and 0 in the operator
    return one.shape == other.shape and np.allclose(one[is_number], other[is_number], rtol=tolerance, atol=tolerance)


def differences(name, before, after, feeds, least_tolerance=0.0):
    told = results(by_runtime, before, feeds)
    for run in (by_runtime, by_reference):
        expected = results(run, before, feeds)
        # Where the two give the model itself another meaning, ONNX Runtime's is asked for alone.
        both = zip(told, expected) if told and expected else ()
        is_disputed = not all(is_alike(one, other, least_tolerance) for one, other in both)
        if expected is None or is_disputed:
            continue
        try:
            actual = run(after, feeds)
        except Exception as error:
            yield f"{name}: {run.__name__}: {str(error)[:300]}"
            continue
        for value, one, other in zip(before.graph.output, expected, actual):
            if not is_alike(one, other, least_tolerance):
                yield f"{name}: {run.__name__}: '{value.name}' differs"


def flat_models(source):
    """Name, model, inputs and the tolerance that its case asks for."""
    for path in sorted((source / "testdata/cases/softmax_attention").glob("*.onnxtxt")):
        text = path.read_text()
        if path.name.endswith(".after.onnxtxt") or "RUN" in text.split("<ir_version")[0]:
            continue
        model = onnx.parser.parse_model(text)
        feeds = inputs_of(model, 0, re.findall(r"(\w+)=(?:bernoulli|uniform)\(", text.split("<ir_version")[0]))
        # A type that is missing is inferred, which no tool does behind a function that hands an input through.
        is_typed = all(output.HasField("type") for output in model.graph.output)
        if is_typed and feeds is not None and model.opset_import[0].domain == "" and model.opset_import[0].version >= 13:
            model.ir_version = max(model.ir_version, 8)
            yield path.stem, model, feeds, max([float(r) for r in re.findall(r"^# VERIFY .*rtol=(\S+)", text, re.M)], default=0.0)


def main(attn_opt, source, count):
    wrong, lost, tried, sites = [], [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, model, wanted in written_out():
            made, found = fused(attn_opt, model, folder)
            wrong += [f"{name}: {found} sites instead of {wanted}"] * (found != wanted)
            wrong += differences(name, model, made, inputs_of(model, 1))
        flat = list(flat_models(source))
        random.Random(7).shuffle(flat)
        for seed in range(count):
            name, model, feeds, tolerance = flat[seed % len(flat)]
            folded = Folder(model, seed).run()
            # ONNX Runtime does not load a function that hands an input through.
            if all(results(run, folded, feeds) is None for run in (by_runtime, by_reference)):
                continue
            tried += 1
            _, wanted = fused(attn_opt, model, folder)
            made, found = fused(attn_opt, folded, folder)
            sites += found
            lost += [f"{name} ({seed}): {found} sites instead of {wanted}"] * (found < wanted)
            wrong += differences(f"{name} ({seed})", folded, made, feeds, tolerance)
    print(f"{tried} folded models, {sites} sites, {len(wrong)} wrong, {len(lost)} with fewer sites")
    print("\n".join(wrong + lost))
    return bool(wrong or lost) or tried < count // 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 60))
