"""docs/python.md: every block of Python in it is run, in order."""
import contextlib
import io
import pathlib
import re
import tempfile
import textwrap

import onnx
import onnx.parser
import onnx_ir as ir
from conftest import MODELS, ROOT, count

import attn_opt

MANUAL = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", MANUAL, re.S)


def without_rounding(text):
    """TEXT without how far doubles are off, which depends on the processor's products."""
    return re.sub(r"algebra [\d.e-]+, [\d.]+ ulp", "algebra, ulp", text)


def run_blocks(folder, monkeypatch):
    """What the blocks define and what each prints."""
    (folder / "testdata").symlink_to(ROOT / "testdata")
    monkeypatch.chdir(folder)
    names, printed = {}, []
    for block in BLOCKS:
        if "FuseAttention" in block:
            names["model"] = ir.load(MODELS / "bert-ts14s.onnx")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, "docs/python.md", "exec"), names)
        printed.append(output.getvalue())
    return names, printed


def test_blocks_do_what_the_text_says(tmp_path, monkeypatch):
    names, printed = run_blocks(tmp_path, monkeypatch)
    assert "attention sites: 2 of 2 fused, 0 refused, 0 missed\n2 of 2 verified; 2 sites assume that " in printed[0]
    assert count(names["fuse"] and ir.to_proto(names["model"]), "Attention") == 2 and (tmp_path / "report.json").exists()
    walk_through = next(text for text in printed if "odds_attention" in text)
    assert without_rounding(textwrap.indent(walk_through.strip(), "    ")) in without_rounding(MANUAL)
    assert names["report"].sites[0].verification.verdict == "verified"

    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
        g (float[b,2,l,8] q, float[b,2,s,8] k, float[b,2,s,8] v, float[8] bias, int64[b] lengths) => (float[b,2,l,8] y) {
          y = acme.BiasedAttention (q, k, v, bias, lengths) }""")
    fused, report = attn_opt.optimize(model, patterns=names["biased_attention"], allow_unverified=True)
    assert sorted(node.op_type for node in fused.graph.node) == ["Add", "Attention"], report.sites[0].explanation
    assert report.sites[0].verification.verdict == "unverified"
    onnx.checker.check_model(fused, full_check=True)
    assert report.unverified == 1
    assert attn_opt.optimize(model, patterns=names["biased_attention"])[1].misses[0].id == "verification.unverified"


def test_the_rule_of_the_manual_fuses_what_the_core_misses(odds, tmp_path):
    rule = re.search(r"```\n(# RULE.*?)```", (ROOT / "docs" / "rules.md").read_text(), re.S).group(1)
    (tmp_path / "mine.rule").write_text(rule)
    assert attn_opt.optimize(odds)[1].sites == []
    fused, report = attn_opt.optimize(odds, patterns=tmp_path)
    assert report.sites[0].pattern == "odds_softmax" and report.sites[0].verification.verdict == "verified"
    assert attn_opt.compare(odds, fused)


def test_every_name_is_described():
    for name in attn_opt.__all__:
        if not isinstance(getattr(attn_opt, name), type) or issubclass(getattr(attn_opt, name), attn_opt.Error):
            assert re.search(rf"\b{name}\b", MANUAL), name
    for name in attn_opt.__all__:
        assert getattr(attn_opt, name).__doc__, name


def test_the_rewrite_of_the_manual():
    manual = (ROOT / "docs" / "rewrites.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", manual, re.S):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, "docs/rewrites.md", "exec"), names)
        for line in output.getvalue().splitlines():
            assert f"# {line}" in block, line
    (rule,) = re.findall(r"```\n(# RULE.*?)```", manual, re.S)
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 18]> g (float[b,4] x) => (float[b,4] y) { n = Neg(x) y = Relu(n) }')
    (folder := pathlib.Path(tempfile.mkdtemp())).joinpath("its.rule").write_text(rule)
    assert attn_opt.optimize(model, patterns=folder)[1].rewritten == 1
