"""Patterns written in Python: what they see, what they return, and what becomes of what they do wrong."""
import gc

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import CASES, count

import attn_opt


def odds_attention(node, context):
    """Attention whose exponentials are odds of a sigmoid."""
    facts = context.facts
    odds, total = (facts.canonical(value).producer for value in node.inputs)
    if not odds or not odds.is_op("Mul") or not total or not total.is_op("ReduceSum"):
        return None
    share, inverse = (value.producer for value in odds.inputs)
    opposite = inverse.inputs[0].producer.inputs[0].producer
    if not opposite.is_op("Neg"):
        return attn_opt.Miss("odds.rest", "no odds", opposite, ["Div"])
    scaled = share.inputs[0].producer
    scale = next(number for number in map(facts.uniform, scaled.inputs) if number is not None)
    q, k = next(value.producer for value in scaled.inputs if value.producer).inputs
    product, _ = node.outputs[0].uses[0]
    return attn_opt.Sdpa(q, (k, "bhds"), product.inputs[1], product.outputs[0], scale=scale, subtracts_maximum=False,
                         peeled=["Div", "Odds"])


def at_div(match, name="mine"):
    return attn_opt.pattern(anchor="Div", name=name)(match)


def run_with(model, match, **options):
    return attn_opt.optimize(model, patterns=[at_div(match)], **options)


def test_fuses_what_the_core_misses(odds):
    assert attn_opt.optimize(odds)[1].sites == []
    fused, report = run_with(odds, odds_attention)
    site = report.sites[0]
    assert site.pattern == "mine" and site.fused and site.peeled == ["Div", "Odds"] and site.verification.verdict == "verified"
    assert [precondition.id for precondition in site.preconditions] == ["exp-in-range", "sizes-not-empty"]
    assert [node.op_type for node in fused.graph.node] == ["Attention"]
    assert attn_opt.compare(odds, fused)


def test_a_wrong_description_changes_nothing(odds):
    def wrong(node, context):
        sdpa = odds_attention(node, context)
        sdpa.scale = 1.0
        return sdpa

    same, report = run_with(odds, wrong)
    assert same is odds and report.refused == 1 and report.sites[0].verification.verdict == "failed"


def test_a_miss_is_reported(odds):
    other = onnx.ModelProto()
    other.CopyFrom(odds)
    next(node for node in other.graph.node if node.op_type == "Neg").op_type = "Abs"
    report = run_with(other, odds_attention)[1]
    assert (report.misses[0].id, report.misses[0].found, report.misses[0].op) == ("odds.rest", "no odds", "Abs")
    assert report.sites[0].peeled == ["Div"]
    assert run_with(odds, lambda node, context: None)[1].sites == []


def test_what_is_told_wrong_is_a_miss(odds):
    def told(**changes):
        def match(node, context):
            sdpa = odds_attention(node, context)
            for name, value in changes.items():
                setattr(sdpa, name, value(node, context) if callable(value) else value)
            return sdpa

        return run_with(odds, match)[1].misses[0].id

    assert told(q_axes="sd") == "parts.rank"
    assert told(q=lambda node, context: node.graph.outputs[0]) == "parts.order"
    assert told(terms=lambda node, context: [attn_opt.Keep(node.inputs[0])]) == "parts.type"
    assert told(output=lambda node, context: node.graph.inputs[0]) == "parts.order"


def test_decorator():
    @attn_opt.pattern(anchor=("Div", "acme::Attention"))
    def found(node, context):
        """What it finds.

        And more."""

    assert (found.name, found.summary, found.anchor) == ("found", "What it finds.", ["Div", "acme::Attention"])
    with pytest.raises(attn_opt.UsageError):
        attn_opt.pattern(anchor=(), name="x")(odds_attention)
    with pytest.raises(attn_opt.UsageError, match="pattern 'odds_attention', anchor: there is no operator 'Sofmax'; did you mean 'Softmax'?"):
        attn_opt.pattern(anchor=["Div", "Sofmax"])(odds_attention)
    with pytest.raises(TypeError, match="anchor"):
        attn_opt.pattern(odds_attention)
    with pytest.raises(TypeError, match="anchor"):
        attn_opt.pattern(odds_attention, anchor="Div")
    with pytest.raises(attn_opt.UsageError):
        attn_opt.pattern(anchor="Div", name="two words")(odds_attention)


def test_names_stand_beside_those_of_the_core(odds):
    mine = at_div(odds_attention)
    assert attn_opt.optimize(odds, patterns=[mine], disable="mine")[1].sites == []
    assert attn_opt.optimize(odds, patterns=mine, only=["mine"])[1].fused == 1
    assert attn_opt.optimize(odds, patterns=[CASES / "rules/acme", mine], only="odds_softmax")[1].fused == 1
    for name in ("softmax_attention", "mine"):
        with pytest.raises(attn_opt.UsageError, match="another pattern"):
            attn_opt.optimize(odds, patterns=[mine, at_div(odds_attention, name)])
    assert attn_opt.patterns()["softmax_attention"]


def test_exceptions_come_through(odds):
    def fails(node, context):
        raise KeyError("lost")

    with pytest.raises(attn_opt.PatternError, match="pattern 'mine' at node 'p', .*test_patterns.py:[0-9]+: KeyError: 'lost'") as raised:
        run_with(odds, fails)
    assert isinstance(raised.value.__cause__, KeyError) and raised.value.__cause__.__traceback__ and raised.value.status == 2

    def stops(node, context):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with(odds, stops)


@pytest.mark.parametrize("returned", [3, "sdpa", [], True])
def test_other_results_are_errors(odds, returned):
    with pytest.raises(attn_opt.PatternError, match="match\\(\\) returns an Sdpa, a Miss or None"):
        run_with(odds, lambda node, context: returned)


@pytest.mark.parametrize("field, value", [
    ("heads", "two"), ("scale", "x"), ("terms", [3]), ("q", 3), ("past_key", "x"), ("assumed", 3), ("softmax_precision", "float33"),
])
def test_fields_of_another_type_are_errors(odds, field, value):
    def match(node, context):
        sdpa = odds_attention(node, context)
        setattr(sdpa, field, value)
        return sdpa

    with pytest.raises(attn_opt.PatternError):
        run_with(odds, match)


def test_what_is_kept_is_refused_when_it_is_over(odds):
    kept = []

    def match(node, context):
        value = node.inputs[0]
        kept.append((node, value, node.graph, context, context.facts, context.build))
        return odds_attention(node, context)

    run_with(odds, match)
    gc.collect()
    node, value, graph, context, facts, build = kept[0]
    uses = [lambda: node.op_type, lambda: node.inputs, lambda: node.attributes, lambda: repr(node), lambda: node.graph, lambda: node.is_op("Div"),
            lambda: value.name, lambda: value.producer, lambda: value.uses, lambda: repr(value), lambda: graph.nodes,
            lambda: graph.find("q"), lambda: context.facts, lambda: context.build, lambda: context.anchor, lambda: context.opset(),
            lambda: facts.shape(value), lambda: facts.uniform(value), lambda: facts.is_no_op(node), lambda: build.ints([1]),
            lambda: build.node("Neg", [value])]
    for use in uses:
        with pytest.raises(TypeError, match="graph that is gone|match that is over"):
            use()
    assert node == node and hash(node) == hash(node) and node in [node]

    def reuses(new_node, new_context):
        return attn_opt.Sdpa(value, value, value, value)

    with pytest.raises(attn_opt.PatternError, match="of another graph, or of a match that is over"):
        run_with(odds, reuses)

    def asks(new_node, new_context):
        new_context.facts.shape(value)

    with pytest.raises(attn_opt.PatternError, match="of another graph, or of a match that is over"):
        run_with(odds, asks)


def seen_by(model, look, anchor):
    seen = []

    @attn_opt.pattern(anchor=anchor)
    def looks(node, context):
        seen.append(look(node, context))

    attn_opt.optimize(model, patterns=[looks])
    return seen


def test_nodes_and_values():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,n] x, bool c) => (float[2,n] y) <float[1] w = {3}> {
          s = Softmax <axis = -1> (x) t = Clip (s, , w)
          y = If (c) <then_branch = a () => (float[2,n] u) { u = Neg (t) }, else_branch = b () => (float[2,n] v) { v = Abs (t) }> }""")

    def look(node, context):
        value = node.outputs[0]
        reader, number = value.uses[0]
        assert node.op_type == "Softmax" and node.domain == "" and node.name == "s" and node.attributes == {"axis": -1}
        assert node.attribute("axis") == -1 and node.attribute("none") is None and node.attribute("none", 3) == 3
        assert value.producer == node and value.output == 0 and number == 0 and reader.op_type == "Clip" and not value.is_output
        assert reader.inputs[1] is None and reader.inputs[2].is_initializer and node.inputs[0].is_input and node.inputs[0].producer is None
        assert node.graph.find("x") == node.inputs[0] and node.graph.find("none") is None and node.graph.parent is None
        assert [one.name for one in node.graph.inputs] == ["x", "c"] and [one.name for one in node.graph.outputs] == ["y"]
        branch = node.graph.nodes[2]
        assert [body.nodes[0].op_type for body in branch.bodies] == ["Neg", "Abs"] and branch.bodies[0].owner == branch
        assert branch.attributes["then_branch"] == branch.bodies[0] and branch.bodies[1].parent == node.graph == context.main
        inner = branch.bodies[0].nodes[0]
        assert (inner, 0) in reader.outputs[0].uses and inner != node and len({inner, node, context.anchor}) == 2
        assert context.opset() == 17 and context.opset("acme") == 0 and context.anchor == node
        return True

    assert seen_by(model, look, "Softmax") == [True]


def test_facts():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float16[2,n,4] x) => (float16[2,n,2,2] y, int64[3] size) <int64[4] sizes = {2, -1, 2, 2}, float[2] w = {1, 2}> {
          i = Identity (x) size = Shape (i) half = Constant <value_float = 0.5> () h = Cast <to = 10> (half) s = Mul (i, h) y = Reshape (s, sizes) }""")

    def look(node, context):
        facts, (source, sizes) = context.facts, node.inputs
        assert facts.shape(source) == (2, attn_opt.Dim("n"), 4) and facts.shape(node.outputs[0]) == (2, attn_opt.Dim("n"), 2, 2)
        assert facts.type(source) == "float16" and facts.type(sizes) == "int64"
        assert facts.integers(sizes) == (2, -1, 2, 2) and facts.integers(node.graph.find("size")) == (2, attn_opt.Dim("n"), 4)
        assert facts.constant(sizes).tolist() == [2, -1, 2, 2] and facts.constant(source) is None
        factor = source.producer.inputs[1]
        assert facts.uniform(factor) == facts.scalar(factor) == 0.5 and facts.uniform(source) is None
        copy = source.producer.inputs[0]
        assert facts.canonical(copy).name == "x" and facts.is_no_op(copy.producer) and not facts.is_no_op(node)
        with pytest.raises(TypeError):
            facts.shape(None)
        with pytest.raises(TypeError):
            facts.shape("x")
        return True

    assert seen_by(model, look, "Reshape") == [True]


def test_dims():
    n, m = attn_opt.Dim("n"), attn_opt.Dim("m")
    assert n + m == m + n and n * 2 == n + n and n - n == 0 and n != m and attn_opt.Dim(3) == 3 and 2 * n == n * 2
    assert (n * 4) // 2 == 2 * n and str(n * m + 1) == "m*n + 1" and len({n, attn_opt.Dim("n")}) == 1 and n != "n"
    assert attn_opt.Dim("past + seq") == attn_opt.Dim("seq") + attn_opt.Dim("past") and 5 - n == 5 + n * -1
    with pytest.raises(ZeroDivisionError):
        n // 0
    with pytest.raises(TypeError):
        n + "m"


def test_drafted_values(odds):
    def match(node, context):
        sdpa = odds_attention(node, context)
        build = context.build
        doubled = build.node("Mul", [sdpa.q, build.scalar(2.0)])
        assert build.node("Mul", [sdpa.q, build.scalar(2.0)]) == doubled and context.facts.shape(doubled) == context.facts.shape(sdpa.q)
        mask = build.node("GreaterOrEqual", [build.constant(np.zeros((1, 1), np.float32)), build.constant(np.zeros((1, 1), np.float32))])
        parts = build.nodes("Split", [sdpa.q], 2, axis=3, num_outputs=2)
        assert context.facts.shape(parts[0])[3] == 2 and context.facts.integers(build.ints([3, 4])) == (3, 4)
        assert context.facts.integers(build.shape(sdpa.q, 1, 2)) == (2,)
        sdpa.q, sdpa.scale, sdpa.terms = doubled, sdpa.scale / 2, [attn_opt.Keep(mask)]
        return sdpa

    fused, report = run_with(odds, match)
    assert report.fused == 1 and report.sites[0].verification.verdict == "verified", report.sites[0].explanation
    assert attn_opt.compare(odds, fused)


def test_attributes_of_drafted_nodes(odds):
    odds.opset_import.add(domain="acme", version=1)
    given = dict(i=1, b=True, f=0.5, s="text", ints=[1, 2], floats=[1, 0.5], strings=["a", "b"], t=np.arange(3), n=np.int64(4))

    def match(node, context):
        made = context.build.node("acme::Op", [node.inputs[0], None], **given).producer  # of a domain without schemas
        assert made.op_type == "Op" and made.domain == "acme" and made.inputs[1] is None
        seen = made.attributes
        assert seen.pop("t").tolist() == [0, 1, 2]
        assert seen == {name: value for name, value in given.items() if name != "t"}
        for wrong in (None, {}, object()):
            with pytest.raises(TypeError):
                context.build.node("acme::Op", [], wrong=wrong)
        with pytest.raises(TypeError):
            context.build.node("acme::Op", ["x"])
        with pytest.raises(ValueError):
            context.build.scalar(1, "int64")
        raise LookupError("all well")

    with pytest.raises(attn_opt.PatternError, match="all well"):
        run_with(odds, match)


def test_axes_are_checked_where_they_are_told(odds):
    def match(node, context):
        with pytest.raises(attn_opt.UsageError, match="Sdpa.k"):
            attn_opt.Sdpa(node.inputs[0], (node.inputs[0], "bhx"), node.inputs[0], node.outputs[0])
        with pytest.raises(TypeError):
            attn_opt.Sdpa(None, node.inputs[0], node.inputs[0], node.outputs[0])
        with pytest.raises(TypeError):
            attn_opt.Bias(None)
        with pytest.raises(attn_opt.UsageError, match="heads"):
            attn_opt.Sdpa(node.inputs[0], node.inputs[0], node.inputs[0], node.outputs[0], heads=-1)

    run_with(odds, match)
