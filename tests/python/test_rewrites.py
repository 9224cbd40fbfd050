"""Rewrites written in Python: what they see, what they make, and what becomes of what they do wrong."""
import onnx
import onnx.parser
import pytest
from conftest import count

import attn_opt
from attn_opt.matcher import fits, op


def model_of(nodes):
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g (float[b,4] x) => (float[b,4] y) {{ {nodes} }}')


@attn_opt.rewrite(anchor="Relu")
class negated:
    """Relu(-x) by what is negative."""

    def match(self, node, context):
        below = context.facts.canonical(node.inputs[0]).producer
        if below is None or not below.is_op("Neg"):
            return None
        return {"x": below.inputs[0], "y": node.outputs[0]}

    def apply(self, match, build):
        return {match["y"]: build.node("Neg", [build.node("Min", [match["x"], build.scalar(0)])])}


def changed(**functions):
    """`negated` with other functions."""
    written = {"match": lambda self, node, context: negated.match(node, context),
               "apply": lambda self, match, build: negated.apply(match, build), **functions}
    return attn_opt.rewrite(anchor="Relu", name="changed")(type("changed", (), written))


NEGATED = "n = Neg(x) y = Relu(n)"


def test_is_applied_and_reported():
    model, report = attn_opt.optimize(model_of(NEGATED), patterns=negated)
    assert count(model, "Relu") == 0 and count(model, "Min") == 1
    (one,) = report.rewrites
    assert one.applied and one.pattern == "negated" and one.verification.verdict == "verified" and one.nodes == ["y", "n"]
    assert report.rewritten == 1 and report.fused == 0 and report.changed and str(report).startswith("rewrites: 1 applied")
    assert repr(report) == "<Report: 0 fused, 0 refused, 0 missed; 1 of 1 rewrites applied>"
    assert attn_opt.compare(model_of(NEGATED), model)


def test_explain_says_what_became_of_it():
    explanation = attn_opt.explain(model_of(NEGATED), patterns=negated)
    assert explanation == [] and [one.outcome for one in explanation.rewrites] == ["rewritten"]
    assert str(explanation) == explanation.rewrites[0].explanation
    assert str(explanation).startswith("y  rewritten  [negated]\n  nodes     y, n\n  written   ")
    assert str(attn_opt.explain(model_of("y = Exp(x)"), patterns=negated)) == "no attention found\n"


@pytest.mark.parametrize("node", ["y", "n", "main/y"])
def test_explain_of_one_place(node):
    two = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 18]> g (float[b,4] x) => (float[b,4] y, float[b,4] z) '
                                  "{ n = Neg(x) y = Relu(n) m = Neg(x) z = Relu(m) }")
    assert [one.name for one in attn_opt.explain(two, patterns=negated).rewrites] == ["y", "z"]
    assert [one.name for one in attn_opt.explain(two, node, patterns=negated).rewrites] == ["y"]
    with pytest.raises(attn_opt.UsageError, match="no attention and no place of a rewrite is called 'yy'; did you mean 'y'"):
        attn_opt.explain(two, "yy", patterns=negated)


def matching(wanted, **options):
    """`negated` that matches by a combinator."""
    return changed(match=lambda self, node, context: fits(wanted, node.outputs[0], context, **options))


@pytest.mark.parametrize("call", [attn_opt.optimize, attn_opt.explain])
def test_what_keeps_it_from_matching_is_traced(call):
    told = []
    call(model_of("n = Sin(x) y = Relu(n)"), patterns=matching(op("Relu", [op("Neg", ["x"])])),
         trace=lambda pattern, node, miss: told.append((pattern, node, miss)))
    ((pattern, node, miss),) = [one for one in told if one[0] == "changed"]
    assert (pattern, node) == ("changed", "y") and (miss.id, miss.node, miss.op) == ("no-match", "n", "Sin")
    assert miss.found == "'n' is Sin, not Neg" and miss.hint is None and str(miss) == "<Miss no-match at n: 'n' is Sin, not Neg>"
    with pytest.raises(ZeroDivisionError):
        call(model_of("n = Sin(x) y = Relu(n)"), patterns=matching(op("Relu", [op("Neg", ["x"])])), trace=lambda *_: 1 / 0)
    with pytest.raises(TypeError, match="is no function of"):
        call(model_of(NEGATED), trace=True)


def test_a_miss_of_an_id_of_ones_own_is_reported():
    near = matching(op("Relu", [op("Neg", ["x"])]), id="mine.near")
    _, report = attn_opt.optimize(model_of("n = Sin(x) y = Relu(n)"), patterns=near)
    assert [(one.miss.id, one.miss.node) for one in report.rewrites] == [("mine.near", "n")]


def test_wrong_numbers_change_nothing():
    given = model_of(NEGATED)
    wrong = changed(apply=lambda self, match, build: {match["y"]: build.node("Relu", [match["x"]])})
    same, report = attn_opt.optimize(given, patterns=[wrong])
    assert same is given and report.rewritten == 0
    (one,) = report.rewrites
    assert one.outcome == "refused" and one.miss.id == "verification.failed" and "differs by 1" in one.miss.found
    with pytest.raises(attn_opt.MismatchError):
        attn_opt.optimize(given, patterns=[wrong], on_mismatch="fail")


def test_a_miss_is_reported_and_none_is_not():
    missed = changed(match=lambda self, node, context: attn_opt.Miss("mine.no", "not today", node))
    _, report = attn_opt.optimize(model_of(NEGATED), patterns=[missed])
    assert [one.miss.id for one in report.rewrites] == ["mine.no"]
    _, report = attn_opt.optimize(model_of("y = Relu(x)"), patterns=[negated])
    assert report.rewrites == []


TWO_READERS = "n = Neg(x) e = Exp(n) r = Relu(n) y = Add(e, r)"


@pytest.mark.parametrize("place, outcome", [(None, "rewritten"), ("e", "rewritten"), ("r", "refused")])
def test_where_new_nodes_go(place, outcome):
    """The negation is replaced too, which has a reader before the Relu."""
    def match(self, node, context):
        found = negated.match(node, context)
        readers = {reader.name: reader for reader, _ in node.inputs[0].uses}
        return attn_opt.RewriteMatch({**found, "n": node.inputs[0]}, insert_before=readers.get(place), peeled=["Neg", "Relu"])

    def apply(self, match, build):
        return {match["n"]: build.node("Sub", [build.scalar(0), match["x"]]), **negated.apply(match, build)}

    model, report = attn_opt.optimize(model_of(TWO_READERS), patterns=changed(match=match, apply=apply))
    (one,) = report.rewrites
    assert one.outcome == outcome and (one.miss is None) == (outcome == "rewritten")
    assert count(model, "Sub") == (outcome == "rewritten")


def test_values_that_are_computed():
    """A rewrite that asks what a value holds: it is right for that value, and not for any."""
    def apply(self, match, build):
        return {match["y"]: match["x"]}

    def rewrite_with(computed):
        def match(self, node, context):
            return attn_opt.RewriteMatch({"x": node.inputs[0], "y": node.outputs[0]}, computed=[node.inputs[0]] if computed else [])
        return changed(match=match, apply=apply)

    for computed, rewritten in ((True, 1), (False, 0)):
        model, report = attn_opt.optimize(model_of("a = Abs(x) y = Relu(a)"), patterns=rewrite_with(computed))
        assert report.rewritten == rewritten, report


def test_a_class_may_derive_from_a_rewrite():
    @attn_opt.rewrite(anchor="Relu")
    class derived(negated):
        """The same, with another replacement."""

        def apply(self, match, build):
            return {match["y"]: build.node("Max", [build.node("Neg", [match["x"]]), build.scalar(0)])}

    model, report = attn_opt.optimize(model_of(NEGATED), patterns=derived)
    assert report.rewrites[0].applied and report.rewrites[0].pattern == "derived" and count(model, "Max") == 1
    with pytest.raises(TypeError, match="no class to derive from"):
        class never(attn_opt.Rewrite(negated.match, negated.apply, "two", "", "Relu")):
            pass


def test_options_know_it():
    assert attn_opt.patterns(negated)["negated"] == "Relu(-x) by what is negative."
    assert attn_opt.optimize(model_of(NEGATED), patterns=negated, disable="negated")[1].rewrites == []
    assert attn_opt.optimize(model_of(NEGATED), patterns=negated, only="negated", priorities={"negated": 200})[1].rewritten == 1
    with pytest.raises(attn_opt.UsageError):
        attn_opt.optimize(model_of(NEGATED), also="no-such")


def test_built_in_ones_are_off_unless_asked_for():
    gelu = "h = Constant<value_float = 0.5>() o = Constant<value_float = 1.0>() r = Constant<value_float = 1.41421354>() " \
           "s = Div(x, r) e = Erf(s) m = Add(e, o) p = Mul(x, m) y = Mul(p, h)"
    assert attn_opt.optimize(model_of(gelu))[1].rewritten == 0
    model, report = attn_opt.optimize(model_of(gelu), also="gelu")
    assert [node.op_type for node in model.graph.node] == ["Gelu"] and report.rewritten == 1


def applying(apply):
    return changed(apply=apply)


@pytest.mark.parametrize("written, said", [
    (applying(lambda self, match, build: 1 / 0), r"^rewrite 'changed' at node 'y', .*test_rewrites.py:\d+: ZeroDivisionError"),
    (applying(lambda self, match, build: {"y": match["x"]}), "what apply\\(\\) replaces is the name 'y': give the Value, not its name"),
    (applying(lambda self, match, build: {match["y"]: 7}), "what apply\\(\\) makes is no Value, but 7"),
    (applying(lambda self, match, build: {match["y"]: build.node("Rellu", [match["x"]])}), "the new node Rellu: there is no operator"),
    (applying(lambda self, match, build: {match["y"]: build.node("Neg", ["x"])}), "an input of a new node is the name 'x': give the Value"),
    (changed(match=lambda self, node, context: fits("x", node.outputs[0], node)), "fits\\(\\) takes the context that match\\(\\) was given, not a Node"),
])
def test_what_raises_is_said_of_the_rewrite(written, said):
    with pytest.raises(attn_opt.PatternError, match=said) as raised:
        attn_opt.optimize(model_of(NEGATED), patterns=written)
    assert "pattern" not in str(raised.value) and "incompatible" not in str(raised.value) and "drafted" not in str(raised.value)


def test_fits_takes_facts_as_in_cpp():
    with_facts = changed(match=lambda self, node, context: fits(op("Relu", [op("Neg", ["x"])], node="relu"), node.outputs[0], context.facts),
                         apply=lambda self, match, build: negated.apply({**match, "y": match["relu"].outputs[0]}, build))
    assert attn_opt.optimize(model_of(NEGATED), patterns=with_facts)[1].rewritten == 1


def test_a_class_without_its_decorator():
    class bare:
        def match(self, node, context):
            pass

        def apply(self, match, build):
            pass

    for given, name in ((bare, "patterns"), (bare(), "patterns"), ([negated, bare], r"patterns\[1\]")):
        with pytest.raises(TypeError, match=rf"{name}: bare is no rewrite yet: decorate the class with @attn_opt.rewrite\(anchor=...\)"):
            attn_opt.optimize(model_of(NEGATED), patterns=given)


def test_remedies_are_in_the_words_of_python():
    wrong = changed(apply=lambda self, match, build: {match["y"]: build.node("Relu", [match["x"]])})
    with pytest.raises(attn_opt.MismatchError, match='; on_mismatch="skip" leaves such sites as they are$'):
        attn_opt.optimize(model_of(NEGATED), patterns=[wrong], on_mismatch="fail")
    with pytest.raises(attn_opt.RequirementError, match="; allow_none=True lets models"):
        attn_opt.optimize(model_of("y = Exp(x)"), require_fused="all")
    with pytest.raises(attn_opt.UsageError, match='take opset=23, or target="ort-contrib"'):
        attn_opt.optimize(model_of("y = Exp(x)"), opset="keep")


@pytest.mark.parametrize("functions", [
    {"match": lambda self, node, context: 1 / 0},
    {"match": lambda self, node, context: context.build.scalar(0)},
    {"apply": lambda self, match, build: None},
    {"apply": lambda self, match, build: {"y": match["x"]}},
    {"apply": lambda self, match, build: {match["y"]: build.node("NoSuchOperator", [match["x"]])}},
])
def test_what_raises(functions):
    with pytest.raises(attn_opt.PatternError, match="changed"):
        attn_opt.optimize(model_of(NEGATED), patterns=[changed(**functions)])


def test_nothing_outlives_the_graph():
    kept = []

    def match(self, node, context):
        kept.append((node, node.outputs[0]))
        return negated.match(node, context)

    attn_opt.optimize(model_of(NEGATED), patterns=[changed(match=match)])
    for node, value in kept:
        with pytest.raises(TypeError):
            node.op_type
        with pytest.raises(TypeError):
            value.name
