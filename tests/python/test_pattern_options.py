"""Patterns as options: what patterns= takes, several folders of rules, patterns that miss what others miss, cases of patterns."""
import pathlib

import onnx.parser
import pytest
from conftest import CASES, count
from test_patterns import at_div, odds_attention, run_with

import attn_opt

RULE = (CASES / "rules/acme/odds_softmax.rule").read_text()


def rules_in(folder, name):
    folder.mkdir()
    (folder / "one.rule").write_text(RULE.replace("odds_softmax", name))
    return folder


@pytest.mark.parametrize("given, said", [
    (odds_attention, r"patterns: odds_attention\(\) is no pattern yet: decorate it with @attn_opt.pattern\(anchor=...\)"),
    ([at_div(odds_attention), odds_attention], r"patterns\[1\]: odds_attention\(\) is no pattern yet"),
    (7, "patterns is 7, a int: patterns are functions with @attn_opt.pattern"),
    (None, "patterns is None"),
    (b"rules", "patterns is b'rules', a bytes"),
    ({"mine": at_div(odds_attention)}, "patterns is {.*}, a dict"),
    ([str(CASES / "rules/acme"), 3.5], r"patterns\[1\] is 3.5, a float"),
    ([None], r"patterns\[0\] is None"),
])
def test_what_is_no_pattern_is_said(odds, given, said):
    for call in (lambda: attn_opt.optimize(odds, patterns=given), lambda: attn_opt.explain(odds, patterns=given),
                 lambda: attn_opt.patterns(given), lambda: attn_opt.test(CASES / "rules", patterns=given)):
        with pytest.raises(TypeError, match=said):
            call()


def test_a_folder_that_is_none(odds, tmp_path):
    with pytest.raises(attn_opt.InvalidModelError, match="holds no rule"):
        attn_opt.optimize(odds, patterns=str(tmp_path))
    with pytest.raises(attn_opt.InvalidModelError, match="nowhere: cannot be read"):
        attn_opt.optimize(odds, patterns=pathlib.Path("nowhere"))


def test_several_folders(odds, tmp_path):
    one, two = rules_in(tmp_path / "one", "first"), rules_in(tmp_path / "two", "second")
    mine = at_div(lambda node, context: None)
    listed = list(attn_opt.patterns([two, mine, str(one)]))
    assert listed[-3:] == ["second", "first", "mine"] and listed[:-3] == list(attn_opt.patterns())
    assert attn_opt.patterns(one)["first"].startswith("attention whose exponentials are odds of a sigmoid")
    assert attn_opt.optimize(odds, patterns=[two, one])[1].sites[0].pattern == "second"
    assert attn_opt.optimize(odds, patterns=(one, two))[1].sites[0].pattern == "first"
    assert attn_opt.optimize(odds, patterns=[one, tmp_path / "two/../one"])[1].fused == 1
    rules_in(tmp_path / "three", "first")
    with pytest.raises(attn_opt.InvalidModelError, match="three.*another pattern 'first'"):
        attn_opt.optimize(odds, patterns=[one, tmp_path / "three"])


def test_ids_of_ones_own_have_no_hint(odds):
    def misses(node, context):
        return attn_opt.Miss("odds.luck", "bad luck", node, ["Div"])

    site = run_with(odds, misses)[1].sites[0]
    assert site.miss.id == "odds.luck" and site.miss.hint is None and site.other_misses == []
    assert "odds.luck" in str(site) and "explain --id" not in str(site)
    for wrong in ("", "two words"):
        with pytest.raises(attn_opt.UsageError, match="no id of a miss"):
            attn_opt.Miss(wrong)


def test_one_site_with_the_misses_of_all_patterns():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[2,2,5,8] q, float[2,2,5,8] k, float[2,2,5,8] v) => (float[2,2,5,8] y) {
          kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, kt) p = Softmax <axis = -2> (s) y = MatMul (p, v) }""")
    alone = attn_opt.explain(model)

    def at_softmax(*peeled):
        return attn_opt.pattern(anchor="Softmax", name="mine")(lambda node, context: attn_opt.Miss("mine.axis", "no", context.main.nodes[1], peeled))

    shallow = attn_opt.explain(model, patterns=at_softmax())
    assert len(alone) == len(shallow) == 1 and shallow.report.missed == 1
    assert shallow[0].miss == alone[0].miss and shallow[0].pattern == alone[0].pattern
    (other,) = shallow[0].other_misses
    assert (other.pattern, other.id, other.node, other.hint) == ("mine", "mine.axis", "s", None)
    assert [miss.id for miss in shallow.report.misses] == [alone[0].miss.id, "mine.axis"]
    assert "also      [mine] mine.axis at s (MatMul): no" in str(shallow[0]) and alone[0].miss.hint in str(shallow[0])
    assert [site.name for site in attn_opt.explain(model, "s", patterns=at_softmax())] == [alone[0].name]
    deep = attn_opt.explain(model, patterns=at_softmax(*"abcdefgh"))
    assert (deep[0].pattern, deep[0].miss.id, deep[0].other_misses[0].id) == ("mine", "mine.axis", alone[0].miss.id)


@pytest.mark.parametrize("op, inputs, attributes, said", [
    ("Sofmax", 1, {}, "the drafted node Sofmax: there is no operator 'Sofmax' in opset 24; did you mean 'Softmax'?"),
    ("ai.onnx::Sofmax", 1, {}, "the drafted node ai.onnx::Sofmax: there is no operator 'Sofmax'"),
    ("Softmax", 1, {"axes": 1}, "the drafted node Softmax: Softmax has no attribute 'axes'; did you mean 'axis'?"),
    ("Softmax", 1, {"axis": 1.5}, "the drafted node Softmax: the attribute 'axis' of Softmax is given as FLOAT; it is INT"),
    ("Softmax", 2, {}, "the drafted node Softmax: Softmax is given 2 inputs; it takes one: input"),
    ("acme::Op", 1, {}, "the drafted node acme::Op: the model does not import the domain 'acme'"),
])
def test_drafts_that_no_model_could_have(odds, op, inputs, attributes, said):
    def match(node, context):
        context.build.node(op, [node.inputs[0]] * inputs, **attributes)

    with pytest.raises(attn_opt.PatternError, match=said) as raised:
        run_with(odds, match)
    assert "pattern 'mine' at node 'p', " in str(raised.value) and "test_pattern_options.py:" in str(raised.value)
    assert isinstance(raised.value.__cause__, attn_opt.UsageError)

    def several(node, context):
        context.build.nodes(op, [node.inputs[0]] * inputs, 1, **attributes)

    with pytest.raises(attn_opt.PatternError, match=said):
        run_with(odds, several)


def case_for(folder, header):
    body = (CASES / "rules/odds.onnxtxt").read_text()
    (folder / "mine.onnxtxt").write_text(f"# CASE mine\n{header}\n" + body[body.index("<ir_version"):])
    return folder / "mine.onnxtxt"


def test_cases_of_a_python_pattern(tmp_path):
    mine = at_div(odds_attention)
    path = case_for(tmp_path, "# RUN --only mine\n# EXPECT fused=1 verdict=verified precondition=exp-in-range:assumed ops=\"Attention:1 Div:0\"")
    results = attn_opt.test(path, patterns=mine)
    assert results and [result.name for result in results] == ["mine"] and results[0].passed and results[0].seconds > 0
    assert str(results) == "1 passed, 0 failed" and attn_opt.test([tmp_path], patterns=[mine])
    without = attn_opt.test(tmp_path)
    assert not without and "there is no pattern 'mine'" in without.failed[0].failures[0]
    assert str(without).startswith(f"FAIL {path} ({path})\n") and str(without).endswith("0 passed, 1 failed")


def test_cases_that_fail(tmp_path):
    path = case_for(tmp_path, "# EXPECT fused=0 miss=odds.luck")
    assert attn_opt.test(path, patterns=at_div(lambda node, context: attn_opt.Miss("odds.luck")))
    results = attn_opt.test(path, patterns=at_div(odds_attention))
    assert not results and any("fused: expected 0, was 1" in failure for failure in results.failed[0].failures)

    def raises(node, context):
        raise KeyError("lost")

    results = attn_opt.test(path, patterns=at_div(raises))
    assert not results and "pattern 'mine' at node 'p'" in results[0].failures[0] and "KeyError" in str(results)

    def stops(node, context):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attn_opt.test(path, patterns=at_div(stops))
    with pytest.raises(attn_opt.UsageError, match="another pattern 'softmax_attention'"):
        attn_opt.test(path, patterns=at_div(odds_attention, "softmax_attention"))
    with pytest.raises(TypeError, match="paths is 3, a int"):
        attn_opt.test(3)
    with pytest.raises(attn_opt.UsageError):
        attn_opt.test([])
    with pytest.raises(attn_opt.InvalidModelError, match="no such file or folder"):
        attn_opt.test(tmp_path / "none")


def test_all_rule_cases_pass():
    results = attn_opt.test(CASES / "rules")
    assert results and len(results) == len(list((CASES / "rules").glob("*.onnxtxt"))) and str(results).startswith(f"{len(results)} passed")


def test_golden_outputs_are_rewritten(tmp_path):
    path = case_for(tmp_path, "# RUN --only mine\n# EXPECT fused=1\n# AFTER mine.after.onnxtxt")
    mine = at_div(odds_attention)
    assert not attn_opt.test(path, patterns=mine)
    assert "wrote the golden file of mine" in str(attn_opt.test(path, patterns=mine, update_golden=True))
    assert attn_opt.test(path, patterns=mine)
    after = onnx.parser.parse_model((tmp_path / "mine.after.onnxtxt").read_text())
    assert count(after, "Attention") == 1
