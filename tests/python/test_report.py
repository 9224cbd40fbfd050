"""The typed view of the report."""
import html
import json
import pickle
import re

import onnx

import attn_opt


def test_everything_of_a_fused_site(bert):
    report = attn_opt.optimize(bert)[1]
    site = report.sites[0]
    assert site.fused and site.outcome == "fused" and site.miss is None and site.pattern == "softmax_attention"
    assert site.q_heads == 4 and site.kv_heads == 4 and site.past is False and abs(site.scale - 8**-0.5) < 1e-6
    assert site.verification.verdict == "verified" and site.verification.draws > 0 and site.verification.reason is None
    assert {precondition.id for precondition in site.preconditions} == {"rows-keep-a-key", "sizes-equal", "sizes-not-empty"}
    assert site.effect["nodes_added"] >= 1 and report.effect["nodes_removed"] > 0
    assert report.nodes["before"] > report.nodes["after"] and {"op": "Attention", "before": 0, "after": 2} in report.operators
    assert [one.name for one in report] == [one.name for one in report.sites]
    assert (report.fused, report.refused, report.missed, report.misses) == (2, 0, 0, [])


def test_a_miss(odds):
    report = attn_opt.optimize(odds)[1]
    assert report.sites == []
    bad = attn_opt.explain(odds, strict=True)
    assert list(bad) == [] and str(bad) == "no attention found\n"


def test_json_has_all_of_it(bert):
    report = attn_opt.optimize(bert)[1]
    parsed = json.loads(report.to_json())
    assert parsed == report.to_dict() and parsed["schema_version"] == report.schema_version
    assert json.loads(report.to_json(indent=None)) == parsed
    report.to_dict()["sites"].clear()
    assert len(report.sites) == 2


def test_the_page_holds_the_report(bert):
    report = attn_opt.optimize(bert)[1]
    page = report.to_html()
    data = re.search(r'<script type="application/json" class="model">(.*?)</script>', page, re.S).group(1)
    assert json.loads(data)["report"] == report.to_dict() and page.startswith("<!doctype html>")
    shown = report._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', shown).group(1)) == page


def test_markdown_is_that_of_the_command(bert):
    text = attn_opt.optimize(bert)[1].to_markdown()
    assert text.startswith("### attn-opt: ") and "**2 of 2 attention sites" in text and "```mermaid\n" in text


def test_what_a_site_was_and_became(bert):
    report = attn_opt.optimize(bert)[1]
    site = report.sites[1]
    assert site.group == 0 and site.type == "float32" and report.groups[0]["sites"] == [0, 1]
    names = {node.output[0] for node in bert.graph.node} | {node.name for node in bert.graph.node}
    assert set(site.nodes_before) <= names and not set(site.nodes_after) & names
    assert len(site.nodes_before) == len(report.groups[0]["before"]["nodes"])
    assert all("layer.1" in name for name in site.tensors["Q"] + site.tensors["K"] + site.tensors["V"])


def test_text(bert):
    report = attn_opt.optimize(bert)[1]
    assert "attention sites: 2 of 2 fused" in str(report) and repr(report) == "<Report: 2 fused, 0 refused, 0 missed>"
    assert "peeled" in str(report.sites[0])


def test_equal_and_pickled(bert):
    report = attn_opt.optimize(bert)[1]
    again = pickle.loads(pickle.dumps(report))
    assert again == report and str(again) == str(report) and again.sites[0].explanation == report.sites[0].explanation
    error = pickle.loads(pickle.dumps(attn_opt.UsageError("what", "where", "remedy")))
    assert str(error) == "where: what; remedy" and error.status == 2
