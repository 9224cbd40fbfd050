"""bench/runtime_effect: the models that it makes, its table and its plot."""
import sys
import types
import xml.etree.ElementTree

import onnx
import pytest
from conftest import ROOT

import attn_opt
from attn_opt.effect import CONTROL, ORIGINAL, Difference, Effect, Ratio, Row

sys.path.insert(0, str(ROOT / "bench"))
from runtime_models.catalogue import ENTRIES  # noqa: E402
from runtime_models.page import markdown_table, plot  # noqa: E402

SMALL = [entry for entry in ENTRIES if entry.name in ("Whisper-base encoder, sdpa", "Stable Diffusion block, eager", "GPT-2 decode, eager")]


@pytest.mark.parametrize("entry", SMALL, ids=lambda entry: entry.name)
def test_models_are_valid_and_their_attentions_found(entry, tmp_path):
    entry.write(str(tmp_path / "m.onnx"))
    onnx.checker.check_model(tmp_path / "m.onnx", full_check=True)
    sites = attn_opt.explain(tmp_path / "m.onnx", verify="off")
    assert [site.outcome for site in sites] == ["fused", "fused"]


def result(sizes, *rows, noise=0.01):
    original = Row(ORIGINAL, cpu_seconds=0.01, peak_bytes=100_000_000)
    control = Row(CONTROL, cpu_ratio=Ratio(1.0, 1 - noise, 1 + noise))
    effect = Effect("m.onnx", "onnxruntime", "1", "1", 1, 5, {}, "cpu", [original, control, *rows], ORIGINAL)
    return types.SimpleNamespace(name="M", sizes=sizes, effect=effect, beside=1)


def row(name, *ratio, **fields):
    return Row(name, fused=2, cpu_ratio=Ratio(*ratio), peak_bytes=90_000_000, difference=Difference("y", 0.5, 1e-6, False), **fields)


RESULTS = [result("seq 1", row("portable", 1.5, 1.4, 1.6), Row("ort", fused=2, same_as="portable")),
           result("seq 2", row("portable", 0.8, 0.7, 0.9), Row("ort", fused=2, failure="it does not")),
           result("seq 3", row("portable", 1.5, 1.4, 1.6), noise=0.5),
           result("seq 4", row("portable", 1.01, 0.9, 1.1), Row("ort", fused=0, same_as=ORIGINAL))]


def test_the_table_has_what_helps_and_what_does_not():
    head, _, faster, slower, noise, same = markdown_table(RESULTS).splitlines()
    assert head == "| model | sizes | original, CPU ms | original again | portable | ort | fuses | peak MB | difference |"
    assert faster == ("| M | seq 1 | 10.0 | 1.00 (0.99 to 1.01) | **1.50** (1.40 to 1.60) | **1.50** (1.40 to 1.60) | 1 | 100 / 90 | 1e-06 |")
    assert "| **0.80** (0.70 to 0.90) | does not run |" in slower
    assert "| 1.50 (1.40 to 1.60) | - |" in noise
    assert "| 1.01 (0.90 to 1.10) | nothing fused |" in same


def test_the_plot_has_a_bar_for_each_ratio():
    names = [element.tag.split("}")[1] for element in xml.etree.ElementTree.fromstring(plot(RESULTS)).iter()]
    background, legend, bars = 1, 2, 5
    assert names.count("rect") == background + legend + bars
