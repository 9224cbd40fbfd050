"""Writes reports of real and of awkward models in every format and holds them against the published schemas.

usage: validate_reports.py ATTN_OPT SOURCE_FOLDER SCHEMA_FOLDER
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import jsonschema
import onnx
import referencing
import xmlschema

ATTN_OPT, SOURCE, SCHEMAS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])


def closed(schema):
    """SCHEMA with objects that have no keys but those it names: so that none goes undocumented."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if "properties" in result and isinstance(result["properties"], dict):
        result.setdefault("additionalProperties", False)
    return result


def own_schema(name):
    schema = json.loads((SOURCE / "docs/schema" / f"{name}-1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return closed(schema)


REPORT, BATCH, BASELINE = own_schema("report"), own_schema("batch"), own_schema("baseline")
REGISTRY = referencing.Registry().with_resources(
    [(schema["$id"], referencing.Resource.from_contents(schema)) for schema in (REPORT, BATCH)]
)
VALIDATORS = {
    "json": jsonschema.Draft202012Validator(REPORT, registry=REGISTRY),
    "batch": jsonschema.Draft202012Validator(BATCH, registry=REGISTRY),
    "baseline": jsonschema.Draft202012Validator(BASELINE),
    "sarif": jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0.json").read_text())),
}
JUNIT = xmlschema.XMLSchema10(SCHEMAS / "junit-10.xsd")


def awkward_model(path):
    """No attention; its names are what JSON, XML, Markdown and addresses treat as their own."""
    name = "a/<b> & \"c\" | `d` \x01 \t \ufffe \U0001f600 %20#"
    nodes = [
        onnx.helper.make_node("Softmax", ["x"], ["p"], axis=-2, name=name),
        onnx.helper.make_node("MatMul", ["p", "x"], ["y"], name="product"),
    ]
    info = lambda value: onnx.helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, [2, 4, 4])
    graph = onnx.helper.make_graph(nodes, "g", [info("x")], [info("y")])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), path)


def run(*arguments):
    return subprocess.run([ATTN_OPT, *map(str, arguments)], capture_output=True, text=True, check=False)


def check_sarif(sarif, report):
    """What code scanning needs beyond the schema."""
    (single,) = sarif["runs"]
    rules = single["tool"]["driver"]["rules"]
    for result in single["results"]:
        rule = rules[result["ruleIndex"]]
        assert rule["id"] == result["ruleId"], result
        short, full = rule["shortDescription"]["text"], rule["fullDescription"]["text"]
        assert short.endswith((".", ":")) and full.startswith(short) and len(short) > 20, rule
        assert len(rule["help"]["markdown"]) > 60, f"no help for {rule['id']}"
        (place,) = result["locations"]
        in_model = result["relatedLocations"][0] if "relatedLocations" in result else place
        artifact = in_model["physicalLocation"]["artifactLocation"]
        assert single["artifacts"][artifact["index"]]["location"]["uri"] == artifact["uri"]
        assert place["logicalLocations"][0]["name"]
    unfused = [place["miss"]["id"] for place in report["sites"] + report["rewrites"] if place["miss"]]
    assert set(unfused) <= {result["ruleId"] for result in single["results"]}, unfused


def check_junit(text, report):
    JUNIT.validate(text)
    (suite,) = xml.etree.ElementTree.fromstring(text)
    tests = suite.findall("testcase")
    assert int(suite.get("tests")) == len(tests)
    for kind in ("failure", "skipped", "error"):
        attribute = {"failure": "failures", "error": "errors"}.get(kind, kind)
        assert int(suite.get(attribute)) == len(suite.findall(f"testcase/{kind}")), kind
    sites = [test for test in tests if test.get("name") != "attn-opt"]
    assert len(sites) == len(report["sites"]) + len(report["rewrites"]), "a test a site and a rewrite"


def check_model(path, folder, *options):
    files = {ending: folder / f"report.{ending}" for ending in ("json", "sarif", "xml", "md")}
    for file in files.values():
        file.unlink(missing_ok=True)
    result = run(path, "-q", *options, *(word for file in files.values() for word in ("--report", file)))
    report, sarif = json.loads(files["json"].read_bytes()), json.loads(files["sarif"].read_bytes())
    VALIDATORS["json"].validate(report)
    VALIDATORS["sarif"].validate(sarif)
    check_sarif(sarif, report)
    check_junit(files["xml"].read_text(), report)
    assert files["md"].read_text().startswith("### attn-opt: "), path
    run_result = sarif["runs"][0]["invocations"][0]
    assert run_result["exitCode"] == result.returncode, result
    print(f"{path.name}: {len(report['sites'])} sites, status {result.returncode}")
    return report


def check_batch(folder):
    """All bundled models, one that cannot be read, and the awkward one."""
    (folder / "models").mkdir()
    (folder / "models/bad.onnx").write_text("no model")
    awkward_model(folder / "models/awk ward #1.onnx")
    files = {ending: folder / f"batch.{ending}" for ending in ("json", "sarif", "xml", "md")}
    baseline = folder / "attn.json"
    words = [word for file in files.values() for word in ("--report", file)]
    result = run("batch", SOURCE / "testdata/models", folder / "models", "-q", "--require-fused", "all", "--baseline", baseline,
                 "--update-baseline", *words)
    assert result.returncode == 3, result
    report, sarif = json.loads(files["json"].read_bytes()), json.loads(files["sarif"].read_bytes())
    VALIDATORS["batch"].validate(report)
    VALIDATORS["sarif"].validate(sarif)
    JUNIT.validate(files["xml"].read_text())
    VALIDATORS["baseline"].validate(json.loads(baseline.read_bytes()))
    models = report["models"]
    assert {model["status"] for model in models} == {0, 1, 3}
    assert len(sarif["runs"][0]["artifacts"]) == len(models)
    suites = xml.etree.ElementTree.fromstring(files["xml"].read_text()).findall("testsuite")
    assert [suite.get("name") for suite in suites] == [model["input"] for model in models]
    assert files["md"].read_text().count("\n| `") == len(models)
    print(f"batch: {len(models)} models")


def check_cases(folder):
    result = run("test", SOURCE / "testdata/cases/softmax_attention/plain.onnxtxt", "--report", folder / "cases.xml")
    assert result.returncode == 0, result
    JUNIT.validate((folder / "cases.xml").read_text())


def check_that_schemas_refuse(report):
    """A schema that takes everything would prove nothing."""
    for break_it in (
        lambda document: document.pop("sites"),
        lambda document: document.update(unknown=1),
        lambda document: document["sites"][0].update(outcome="lost"),
        lambda document: document["sites"][0]["effect"].pop("nodes_added"),
    ):
        broken = copy.deepcopy(report)
        break_it(broken)
        assert not VALIDATORS["json"].is_valid(broken)
    assert not VALIDATORS["sarif"].is_valid({"version": "2.1.0", "runs": [{"results": []}]})
    assert not JUNIT.is_valid("<testsuites><testsuite name='a'/></testsuites>")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        models = sorted((SOURCE / "testdata/models").glob("*.onnx"))
        assert models
        for model in models:
            check_model(model, folder, "--verify", "off" if "swin" in model.name else "sites")
        fused = check_model(SOURCE / "testdata/models/llama-past-ts17s.onnx", folder, "--verify", "model")
        assert fused["model_verification"]["outputs"]
        check_that_schemas_refuse(fused)
        awkward_model(folder / "awk ward #1.onnx")
        assert check_model(folder / "awk ward #1.onnx", folder, "--require-fused", "all")["summary"]["missed"] == 1
        strict = check_model(SOURCE / "testdata/models/llama-past-ts17s.onnx", folder, "--exact", "--check")
        assert strict["summary"]["refused"] > 0, "a refused site too"
        cases = SOURCE / "testdata/cases/rewrites"
        for name, key in (("rule", "rewritten"), ("rule_careless", "rewrites_refused")):
            rewrites = check_model(cases / f"{name}.onnxtxt", folder, "--rules", cases / "relu", "--on-mismatch", "fail")
            assert rewrites["summary"][key] == 1, rewrites["summary"]
        check_batch(folder)
        check_cases(folder)


main()
