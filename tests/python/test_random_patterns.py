"""Descriptions drawn at random: whatever a pattern tells, nothing crashes, and no site is fused whose numbers would change."""
import contextlib
import math
import random

import onnx.parser
import pytest

import attn_opt

MODEL = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[b,2,l,4] q, float[b,2,s,4] k, float[b,2,s,4] v, float[b,2,p,4] past_k, float[b,2,p,4] past_v, bool[l,s] mask,
       float[b,1,l,s] bias, int64[b] lengths, float[b,l,8] flat, float[x] one, float16[b,2,s,4] half, bool condition)
      => (float[b,2,l,4] y, float z, float[b,2,l,4] w) <float two = {2}> {
      kt = Transpose <perm = [0, 1, 3, 2]> (k) product = MatMul (q, kt) powers = Pow (two, product) e = Exp (product)
      last = Constant <value_ints = [-1]> () total = ReduceSum (powers, last) p = Div (powers, total) y = MatMul (p, v)
      z = ReduceSum <keepdims = 0> (one)
      w = If (condition) <then_branch = a () => (float[b,2,l,4] u) { c = Softmax (q) u = Neg (c) },
                          else_branch = o () => (float[b,2,l,4] n) { n = Abs (q) }> }""")
NAMES = "q k v past_k past_v mask bias lengths flat one half product powers total p y z w".split()
AXES = ["bhsd", "bhds", "bs(hd)", "(bh)sd", "sd", "bsd", "sbhd", "b(hs)d", "hbsd", "s(hd)", "s"]
RIGHT = {"q": "q", "k": "k", "v": "v", "output": "y"}
OPTIONAL = {"nonpad_kv_seqlen": "lengths", "past_key": "past_k", "past_value": "past_v", "present_key": "kt", "present_value": "p"}


class Draw:
    """Descriptions that are right but for what chance changes."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, context, name=None):
        if name and self.random.random() < 0.75:
            return context.main.find(name)
        if self.random.random() < 0.2:
            operator = self.random.choice(["Neg", "Add", "MatMul", "Transpose", "Concat", "NoOperator"])
            inputs = [context.main.find(self.random.choice(NAMES)) for _ in range(self.random.randint(0, 2))]
            with contextlib.suppress(attn_opt.UsageError):  # no such operator, or not with so many inputs
                return context.build.node(operator, inputs, **({"axis": 1} if operator == "Concat" else {}))
        nodes = self.random.choice([context.main, context.anchor.graph]).nodes
        inner = [value for node in nodes for value in (*node.inputs, *node.outputs) if value]
        return self.random.choice([context.main.find(self.random.choice(NAMES)), *inner])

    def options(self, context):
        one_of, chance = self.random.choice, lambda: self.random.random() < 0.15
        terms = [attn_opt.Bias, attn_opt.Keep, attn_opt.Drop]
        drawn = {
            "heads": one_of([-1, 1, 2, 3, 10**12]), "kv_heads": one_of([-1, 1, 2, 8]), "softcap": one_of([1, -1, math.nan]),
            "terms": [one_of(terms)(self.value(context, one_of(["mask", "bias"])), one_of([1, -math.inf, math.nan])) for _ in range(2)],
            "is_causal": True, "guarded": True, "softmax_precision": one_of(["float16", "float64", "int64"]), "assumed": ["something"],
            **{name: self.value(context, usual) for name, usual in OPTIONAL.items()},
        }
        return {name: value for name, value in drawn.items() if chance()}

    def match(self, node, context):
        parts = []
        for usual in RIGHT.values():
            value = self.value(context, usual)
            parts.append(value if self.random.random() < 0.7 else (value, self.random.choice(AXES)))
        scale = self.random.choice([math.log(2), math.log(2), math.log(2), 0.5, 0, math.nan, math.inf])
        try:
            return attn_opt.Sdpa(*parts, scale=scale, subtracts_maximum=self.random.random() < 0.2, **self.options(context))
        except attn_opt.UsageError:  # axes that are spelled wrong
            return None


@pytest.mark.parametrize("seed", range(4))
def test_nothing_wrong_is_fused(seed):
    draw = Draw(seed)
    told = attn_opt.pattern(anchor=["Div", "Softmax", "ReduceSum", "Exp"], name="told")(draw.match)
    fused = 0
    for _ in range(150):
        form, target = draw.random.choice(["auto", "3d", "4d"]), draw.random.choice(["portable", "spec"])
        model, report = attn_opt.optimize(MODEL, patterns=told, only="told", form=form, target=target)
        sites = [site for site in report.sites if site.fused]
        assert all(site.verification.verdict == "verified" for site in sites), [str(site) for site in sites]
        fused += len(sites)
        # a softmax told to run in float16 may differ by as much
        assert not sites or attn_opt.compare(MODEL, model, seeds=1, rtol=1e-2, atol=1e-3), [str(site) for site in sites]
    assert fused > 0
