"""attn_opt.matcher: what fits, and what is captured."""
import onnx.parser
import pytest

import attn_opt
from attn_opt import matcher as m


def found(nodes, wanted, opset=18, id="no-match"):
    """What `wanted` captures at y, whose nodes compute it from x and z; names in the place of values, labels of nodes."""
    seen = []

    @attn_opt.rewrite(anchor=("Abs", "Add", "Mul", "Div", "Sub", "Relu", "Clip", "Softmax", "Transpose", "Cast", "acme::Op"))
    class looks:
        def match(self, node, context):
            if node.outputs[0].name == "y":
                fitted = m.fits(wanted, node.outputs[0], context, id)
                seen.append(fitted if isinstance(fitted, attn_opt.Miss) else {
                    name: getattr(value, "name", value) for name, value in fitted.items()})

        def apply(self, match, build):
            raise AssertionError

    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "acme": 1]> g (float[2,3,4,5] x, float[2,3,4,5] z) => '
                                    f"(float[2,3,4,5] y) {{ two = Constant<value_float = 2.0>() {nodes} }}")
    attn_opt.optimize(model, patterns=looks)
    return seen[0]


def test_a_name_is_one_value_everywhere():
    assert found("n = Neg(x) y = Relu(n)", m.op("Relu", [m.op("Neg", ["a"])])) == {"a": "x"}
    assert found("y = Mul(x, x)", m.op("Mul", ["a", "a"])) == {"a": "x"}
    assert isinstance(found("y = Mul(x, z)", m.op("Mul", ["a", "a"])), attn_opt.Miss)
    for operands in ("x, t", "t, x"):
        assert found(f"t = Tanh(x) y = Mul({operands})", m.commuted("Mul", "a", m.op("Tanh", ["a"]))) == {"a": "x"}
        assert isinstance(found(f"t = Tanh(z) y = Mul({operands})", m.commuted("Mul", "a", m.op("Tanh", ["a"]))), attn_opt.Miss)
    assert found("y = Mul(x, z)", m.op("Mul", [m.any("a"), m.any()])) == {"a": "x"}


def test_what_is_captured_is_what_the_node_reads():
    assert found("i = Identity(x) y = Mul(x, i)", m.op("Mul", ["a", "b"])) == {"a": "x", "b": "i"}
    assert found("i = Identity(x) y = Mul(x, i)", m.op("Mul", ["a", "a"])) == {"a": "x"}


def test_numbers():
    assert found("y = Mul(x, two)", m.op("Mul", ["a", 2])) == {"a": "x"}
    assert found("y = Mul(x, two)", m.op("Mul", ["a", 2.0001])) == {"a": "x"}
    assert found("y = Mul(x, two)", m.commuted("Mul", m.number("n"), "a")) == {"a": "x", "n": 2.0}
    for wanted in (m.number_is(2.0001), m.number_near(2.1), m.number_near(2.0001, relative=1e-6), 3):
        assert isinstance(found("y = Mul(x, two)", m.op("Mul", ["a", wanted])), attn_opt.Miss)


def test_operands_that_may_be_absent_are_none():
    clip = m.op("Clip", ["a", m.optional(m.number("low")), m.optional("high")])
    assert found("y = Clip(x, two)", clip) == {"a": "x", "low": 2.0, "high": None}
    assert found("y = Clip(x, , two)", clip) == {"a": "x", "low": None, "high": "two"}


def test_alternatives_and_what_is_repeated():
    either = m.either(m.op("Neg", ["a"]), m.op("Exp", ["b"]))
    assert found("n = Exp(x) y = Abs(n)", m.op("Abs", [either])) == {"a": None, "b": "x"}
    casts = m.op("Abs", [m.repeated("Cast", m.op("Exp", ["a"]))])
    assert found("n = Exp(x) y = Abs(n)", casts) == {"a": "x"}
    assert found("n = Exp(x) h = Cast<to = 10>(n) f = Cast<to = 1>(h) y = Abs(f)", casts) == {"a": "x"}


def test_attributes_given_or_by_default():
    assert found("y = Softmax<axis = 1>(x)", m.op("Softmax", ["a"], axis=1)) == {"a": "x"}
    assert found("y = Softmax(x)", m.op("Softmax", ["a"], axis=-1)) == {"a": "x"}
    assert isinstance(found("y = Softmax(x)", m.op("Softmax", ["a"], axis=1)), attn_opt.Miss)
    assert found("y = Softmax(x)", m.op("Softmax", ["a"], axis=lambda axis: axis < 0)) == {"a": "x"}
    transposed = m.op("Relu", [m.op("Transpose", ["a"], perm=[0, 1, 3, 2])])
    assert found("t = Transpose<perm = [0, 1, 3, 2]>(x) y = Relu(t)", transposed) == {"a": "x"}
    for other in ("t = Transpose<perm = [0, 2, 1, 3]>(x)", "t = Transpose(x)"):
        assert isinstance(found(f"{other} y = Relu(t)", transposed), attn_opt.Miss)
    assert found("l = LeakyRelu<alpha = 0.1>(x) y = Abs(l)", m.op("Abs", [m.op("LeakyRelu", ["a"], alpha=0.1)])) == {"a": "x"}
    assert isinstance(found("l = LeakyRelu<alpha = 0.1>(x) y = Abs(l)", m.op("Abs", [m.op("LeakyRelu", ["a"], alpha=0.2)])), attn_opt.Miss)
    assert isinstance(found("y = Softmax(x)", m.op("Softmax", ["a"], no_such=1)), attn_opt.Miss)
    assert found("y = Mul(x, z)", m.where("a", lambda node: node.is_op("Mul"))) == {"a": "y"}


def test_reductions_and_lists():
    for opset, nodes in ((18, "k = Constant<value_ints = [2, -1]>() r = ReduceMean(x, k)"), (13, "r = ReduceMean<axes = [2, -1]>(x)")):
        wanted = m.op("Sub", ["a", m.reduced_over("ReduceMean", [2, 3], "a")])
        assert found(nodes + " y = Sub(x, r)", wanted, opset) == {"a": "x"}
        assert isinstance(found(nodes + " y = Sub(x, r)", m.op("Sub", ["a", m.reduced_over_last("ReduceMean", "a")]), opset), attn_opt.Miss)
    assert found("k = Constant<value_ints = [2, 3, 4, 5]>() e = Expand(x, k) n = Expand(e, k) y = Add(z, n)",
                 m.op("Add", ["a", "b"])) == {"a": "z", "b": "n"}
    assert found("k = Constant<value_ints = [1, 1, 2, 1]>() n = Tile(x, k) s = Relu(n) y = Add(s, s)",
                 m.op("Add", [m.op("Relu", [m.op("Tile", ["a", [1, 1, 2, 1]])])])) == {"a": "x"}


def test_products():
    half = m.product_near(0.5, ["a", m.op("Erf", ["b"])])
    assert found("h = Constant<value_float = 0.5>() e = Erf(z) p = Mul(e, x) y = Mul(p, h)", half) == {"a": "x", "b": "z"}
    assert found("e = Erf(z) p = Mul(e, x) y = Div(p, two)", half) == {"a": "x", "b": "z"}
    assert found("p = Mul(two, x) y = Mul(p, z)", m.product_of(["a", "b"], "c"))["c"] == 2.0


def test_other_domains_and_nodes():
    assert found("y = acme.Op(x)", m.op("acme::Op", ["a"], node="it"))["it"] == "y"
    assert isinstance(found("y = acme.Op(x)", m.op("Op", ["a"])), attn_opt.Miss)


def test_the_miss_says_what_was_found_where_it_got_furthest():
    miss = found("e = Exp(x) n = Neg(e) y = Relu(n)", m.op("Relu", [m.op("Neg", [m.op("Tanh", ["a"])])]), id="mine.no")
    assert miss.id == "mine.no" and miss.detail == "'e' is Exp, not Tanh"


CONVOLVED = m.op("Conv", [m.reduced_over("ReduceMean", [2, 3], "x"), "w1", m.optional("b1")])
GATE = m.op("Clip", [m.commuted("Add", m.op("Conv", [m.op("Relu", [CONVOLVED]), "w2", m.optional("b2")]), 3), 0, 6])


@attn_opt.rewrite(anchor="Mul")
class squeeze_excite:
    """A Squeeze-Excite gate with a hard sigmoid written out."""

    slope = 1 / 6

    def match(self, node, context):
        return m.fits(m.commuted("Mul", "x", m.op("Div", [GATE, 6]), node="gated"), node.outputs[0], context)

    def apply(self, match, build):
        def conv(x, number):
            return build.node("Conv", [x, match["w" + number], *filter(None, [match["b" + number]])])

        mean = build.node("GlobalAveragePool", [match["x"]])
        scores = conv(build.node("Relu", [conv(mean, "1")]), "2")
        gate = build.node("HardSigmoid", [scores], alpha=self.slope, beta=0.5)
        return {match["gated"].outputs[0]: build.node("Mul", [match["x"], gate])}


@attn_opt.rewrite(anchor="Mul")
class careless_gate(squeeze_excite):
    slope = 0.2


@pytest.mark.parametrize("sum, product", [("c2, three", "x, s"), ("three, c2", "s, x")])
@pytest.mark.parametrize("biases", [("b1", "b2"), ("", "b2"), ("", "")])
def test_a_gate_of_squeeze_excite(sum, product, biases):
    first, second = (f", {bias}" if bias else "" for bias in biases)
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[n,4,h,w] x, float[2,4,1,1] w1, float[2] b1, float[4,2,1,1] w2, float[4] b2) => (float[n,4,h,w] y)
        <float three = {{3}}, float zero = {{0}}, float six = {{6}}, int64[2] axes = {{2, 3}}> {{
          m = ReduceMean <keepdims = 1> (x, axes) c1 = Conv (m, w1{first}) r = Relu (c1) c2 = Conv (r, w2{second})
          a = Add ({sum}) c = Clip (a, zero, six) s = Div (c, six) y = Mul ({product}) }}""")
    written, report = attn_opt.optimize(model, patterns=squeeze_excite)
    assert report.rewritten == 1 and report.rewrites[0].verification.verdict == "verified"
    assert [node.op_type for node in written.graph.node] == ["GlobalAveragePool", "Conv", "Relu", "Conv", "HardSigmoid", "Mul"]
    (wrong,) = attn_opt.optimize(model, patterns=careless_gate)[1].rewrites
    assert wrong.outcome == "refused" and "y differs by 0." in wrong.miss.found


@pytest.mark.parametrize("wanted", [lambda: m.op("Mul", [None, "a"]), lambda: m.either(m.optional("a")), lambda: m.where({}, bool),
                                    lambda: m.product_of([["a"]])])
def test_what_is_no_matcher(wanted):
    with pytest.raises(TypeError):
        wanted()


def test_what_a_test_raises_is_told():
    with pytest.raises(attn_opt.PatternError, match="looks"):
        found("y = Mul(x, z)", m.where("a", lambda node: 1 / 0))
