"""attn_opt.GraphBuilder: what it builds runs in ONNX Runtime with NumPy's numbers, and what it refuses."""
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import ROOT, count

import attn_opt

RANDOM = np.random.default_rng(7)


def run(model, **inputs):
    """Outputs of MODEL in ONNX Runtime."""
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def test_a_model_from_nothing():
    build = attn_opt.GraphBuilder(opset=21, name="layer")
    weight = numbers(4, 3)
    x = build.input("x", "float32", ["batch", 4])
    product = build.node("MatMul", [x, build.initializer("w", weight)])
    assert (product.type, product.dims) == ("float32", ("batch", 3))
    largest, where = build.nodes("TopK", [product, build.ints([1])], 2, axis=-1)
    assert (where.type, where.dims) == ("int64", ("batch", 1))
    build.output("y", build.node("Sub", [product, largest]))
    build.output("where", where)
    build.set_metadata("author", "me")
    model = build.model()
    assert model.graph.name == "layer" and model.metadata_props[0].value == "me" and model.opset_import[0].version == 21
    given = numbers(5, 4)
    y, place = run(model, x=given)
    expected = given @ weight
    np.testing.assert_allclose(y, expected - expected.max(-1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(place[:, 0], expected.argmax(-1))


def test_branches_of_an_if():
    build = attn_opt.GraphBuilder(opset=21)
    x = build.input("x", "float32", ["n"])
    total = build.node("Add", [x, x])
    positive, negative = build.body("positive"), build.body("negative")
    positive.output("p", positive.node("Relu", [total]))
    negative.output("n", negative.node("Neg", [total]))
    chosen = build.node("If", [build.input("flag", "bool", [])], then_branch=positive, else_branch=negative)
    assert chosen.dims == ("n",)
    build.output("total", total)
    build.output("y", chosen)
    given = numbers(6)
    for flag, expected in ((True, np.maximum(2 * given, 0)), (False, -2 * given)):
        total, y = run(build.model(), x=given, flag=np.array(flag))
        np.testing.assert_allclose(y, expected)
        np.testing.assert_allclose(total, 2 * given)


def test_turns_of_a_loop():
    build = attn_opt.GraphBuilder(opset=21)
    x, start = build.input("x", "float32", [3]), build.input("start", "float32", [3])
    turn = build.body("turn")
    turn.input("i", "int64", [])
    go_on = turn.input("go_on", "bool", [])
    before = turn.input("before", "float32", [3])
    after = turn.node("Add", [turn.node("Mul", [before, x]), x])  # x is of the graph around
    turn.output("go_on", go_on)
    turn.output("after", after)
    turn.output("history", after)
    last, history = build.nodes("Loop", [build.input("turns", "int64", []), None, start], 2, body=turn)
    assert history.dims == (None, 3)
    with pytest.raises(attn_opt.UsageError, match="the number of its axes is not known; declare"):
        build.output("last", last)  # to ONNX a Loop may change the shape of what it carries
    build.declare(last, "float32", [3])
    build.output("last", last)
    build.output("history", history)
    given, value = numbers(3), numbers(3)
    results = run(build.model(), x=given, start=value, turns=np.array(4, np.int64))
    steps = []
    for _ in range(4):
        value = value * given + given
        steps.append(value)
    np.testing.assert_allclose(results[0], steps[-1], rtol=1e-5)
    np.testing.assert_allclose(results[1], np.stack(steps), rtol=1e-5)


def test_a_scan():
    build = attn_opt.GraphBuilder(opset=21)
    x = build.input("x", "float32", ["n", 2])
    step = build.body("step")
    total = step.node("Add", [step.input("total", "float32", [2]), step.input("row", "float32", [2])])
    step.output("next", total)
    step.output("sum", total)
    _, sums = build.nodes("Scan", [build.constant(np.zeros(2, np.float32)), x], 2, body=step, num_scan_inputs=1)
    build.output("sums", sums)
    given = numbers(5, 2)
    np.testing.assert_allclose(run(build.model(), x=given)[0], given.cumsum(0), rtol=1e-5)


def test_functions_and_their_calls():
    build = attn_opt.GraphBuilder(opset=21)
    scaled = build.function("acme", "Scaled", offset=1.0)
    x = scaled.input("x", None)
    factor, offset = (scaled.node("Constant", [], value_float=attn_opt.Parameter(name, "float")) for name in ("factor", "offset"))
    scaled.output("y", scaled.node("Add", [scaled.node("Mul", [x, factor]), offset]))
    x = build.input("x", "float32", ["n"])
    once = build.node("acme::Scaled", [x], factor=2.0)
    assert once.dims == ("n",)
    build.output("y", build.node("acme::Scaled", [once], factor=3.0, offset=0.5))
    model = build.model()
    assert [list(function.attribute) for function in model.functions] == [["factor"]] and count(model, "Scaled") == 2
    given = numbers(4)
    np.testing.assert_allclose(run(model, x=given)[0], 3 * (2 * given + 1) + 0.5, rtol=1e-5)


def attention(build, heads, size):
    """Softmax attention of (batch, seq, heads * size) inputs with a mask, as exporters write it."""
    def by_heads(name, perm):
        value = build.input(name, "float32", ["batch", f"{'q' if name == 'q' else 'k'}_len", heads * size])
        return build.node("Transpose", [build.node("Reshape", [value, build.ints([0, 0, heads, size])])], perm=perm)

    scores = build.node("MatMul", [by_heads("q", [0, 2, 1, 3]), by_heads("k", [0, 2, 3, 1])])
    scores = build.node("Mul", [scores, build.scalar(size ** -0.5)])
    mask = build.input("mask", "float32", ["batch", 1, "q_len", "k_len"])
    weights = build.node("Softmax", [build.node("Add", [scores, mask])], axis=-1)
    mixed = build.node("Transpose", [build.node("MatMul", [weights, by_heads("v", [0, 2, 1, 3])])], perm=[0, 2, 1, 3])
    build.output("y", build.node("Reshape", [mixed, build.ints([0, 0, heads * size])]))


def test_an_attention_that_is_built_is_fused():
    build = attn_opt.GraphBuilder(opset=17)
    attention(build, 4, 8)
    model = build.model()
    q, k, v, mask = numbers(2, 3, 32), numbers(2, 5, 32), numbers(2, 5, 32), numbers(2, 1, 3, 5)
    heads = [part.reshape(2, -1, 4, 8).transpose(0, 2, 1, 3) for part in (q, k, v)]
    weights = softmax(heads[0] @ heads[1].transpose(0, 1, 3, 2) / np.sqrt(8) + mask)
    expected = (weights @ heads[2]).transpose(0, 2, 1, 3).reshape(2, 3, 32)
    inputs = {"q": q, "k": k, "v": v, "mask": mask}
    np.testing.assert_allclose(run(model, **inputs)[0], expected, rtol=1e-4, atol=1e-5)
    fused, report = attn_opt.optimize(model)
    assert report.fused == 1 and count(fused, "Attention") == 1 and count(fused, "Softmax") == 0
    np.testing.assert_allclose(run(fused, **inputs)[0], expected, rtol=1e-4, atol=1e-5)


def test_types_that_are_declared():
    build = attn_opt.GraphBuilder()
    build.import_opset("acme", 2)
    fast = build.node("acme::Fast", [build.input("x", "float16", ["n"])], mode="quick")
    assert (fast.type, fast.dims) == (None, None)
    build.declare(fast, "float16", ["n", None, 3])
    assert (fast.type, fast.dims) == ("float16", ("n", None, 3))
    build.output("y", fast)
    sequence = onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None))
    parts = build.input("parts", sequence)
    joined = build.node("ConcatFromSequence", [parts], axis=0)
    build.declare(joined, "float32", [None, 2])
    build.output("joined", joined)
    onnx.checker.check_model(build.model(), full_check=True)


def test_names_begin_as_asked_for():
    build = attn_opt.GraphBuilder()
    build.begin_names_with("layer.0")
    build.output("y", build.node("Neg", [build.input("x", "float32", [2])]))
    assert build.model().graph.node[0].name == "layer.0/Neg"


@pytest.mark.parametrize("make, said", [
    (lambda build, x: build.node("Sofmax", [x]), "there is no operator 'Sofmax' in opset 21; did you mean 'Softmax'?"),
    (lambda build, x: build.node("Attention", [x, x, x]), "in opset 21; it came with opset 23"),
    (lambda build, x: build.node("Add", [x]), "Add is given 1 input; it takes: A, B"),
    (lambda build, x: build.node("Softmax", [x], axes=1), "Softmax has no attribute 'axes'; did you mean 'axis'?"),
    (lambda build, x: build.node("Cast", [x]), "Cast needs the attribute 'to'; it is INT"),
    (lambda build, x: build.node("Softmax", [x], axis=1.5), "the attribute 'axis' of Softmax is given as FLOAT; it is INT"),
    (lambda build, x: build.node("MatMul", [x, x]), "its inputs are x float32[2, 3], x float32[2, 3]"),
    (lambda build, x: build.node("acme::Op", [x]), "the model does not import the domain 'acme'"),
    (lambda build, x: build.input("x", "bool", []), "the model has that name already; give it another"),
    (lambda build, x: build.input("z", None), "input 'z' of graph 'main': its type is not known; give its type and sizes"),
    (lambda build, x: build.input("z", "bool"), "the number of its axes is not known"),
    (lambda build, x: build.node("Neg", [build.body().node("Abs", [x])]), "bodies and functions hand out their outputs only"),
    (lambda build, x: build.declare(x, "int64", [2, 3]), "it is float32[2, 3]"),
])
def test_errors_are_one_line_and_leave_the_model_as_it_was(make, said):
    build = attn_opt.GraphBuilder(opset=21)
    x = build.input("x", "float32", [2, 3])
    for _ in range(2):
        with pytest.raises(attn_opt.UsageError, match=re.escape(said)) as raised:
            make(build, x)
        assert "\n" not in str(raised.value)
    build.output("y", build.node("Relu", [x]))
    assert [node.op_type for node in build.model().graph.node] == ["Relu"]


def test_errors_of_functions():
    build = attn_opt.GraphBuilder(opset=21)
    function = build.function("acme", "F", alpha=1.0)
    with pytest.raises(attn_opt.UsageError, match="initializer 'w' of function 'F': functions have none"):
        function.initializer("w", np.ones(2))
    function.output("y", function.node("Neg", [function.input("x", None)]))
    x = build.input("x", "float32", [2])
    with pytest.raises(attn_opt.UsageError, match="acme::F has no attribute 'alhpa'; did you mean 'alpha'?"):
        build.node("acme::F", [x], alhpa=2.0)
    with pytest.raises(attn_opt.UsageError, match="node 'Abs' of function 'F': it was finished when a node took it"):
        function.node("Abs", [])


def test_what_is_no_value():
    build, other = attn_opt.GraphBuilder(), attn_opt.GraphBuilder()
    x = other.input("x", "float32", [1])
    with pytest.raises(TypeError, match="Value of another graph"):
        build.node("Neg", [x])
    with pytest.raises(TypeError, match="is the name .x.: give the Value, not its name"):
        build.node("Neg", ["x"])
    with pytest.raises(TypeError, match="NoneType"):
        build.output("y", None)
    with pytest.raises(ValueError, match="type of an attribute"):
        attn_opt.Parameter("a", "number")


def test_values_outlive_their_builder():
    x = attn_opt.GraphBuilder().input("x", "float32", [1])
    assert (x.name, x.dims, x.producer) == ("x", (1,), None)


def test_the_examples_of_the_manual(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "builder.md").read_text(), re.S)
    names = {}
    for block in blocks:
        exec(compile(block, "docs/builder.md", "exec"), names)
    assert len(blocks) >= 4 and isinstance(names["model"], onnx.ModelProto)
