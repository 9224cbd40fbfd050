"""optimize() and explain(): every kind of model, every option."""
import json
import shutil
import threading
import time

import numpy as np
import onnx
import onnx.checker
import onnxruntime
import pytest
from conftest import CASES, MODELS, count

import attn_opt


def by_onnxruntime(model, inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def test_a_proto_becomes_a_proto(bert, bert_inputs):
    before = bert.SerializeToString(deterministic=True)
    fused, report = attn_opt.optimize(bert)
    assert bert.SerializeToString(deterministic=True) == before
    assert isinstance(fused, onnx.ModelProto)
    assert report.fused == 2 and report.changed and count(fused, "Attention") == 2 and count(fused, "Softmax") == 0
    onnx.checker.check_model(fused, full_check=True)
    for one, other in zip(by_onnxruntime(bert, bert_inputs), by_onnxruntime(fused, bert_inputs)):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_a_path_becomes_what_is_asked_for(bert_path, tmp_path):
    output = tmp_path / "fused.onnx"
    written, report = attn_opt.optimize(bert_path, output)
    assert written == output and report.output == str(output) and report.input == str(bert_path)
    assert count(onnx.load(output), "Attention") == 2
    fused, _ = attn_opt.optimize(str(bert_path))
    assert fused == onnx.load(output)


def test_a_proto_can_be_written(bert, tmp_path):
    written, report = attn_opt.optimize(bert, tmp_path / "fused.onnx")
    assert onnx.load(written) == attn_opt.optimize(bert)[0]
    assert report.input == ""


def test_nothing_to_fuse_gives_the_model_back(without_attention, tmp_path):
    same, report = attn_opt.optimize(without_attention)
    assert same is without_attention and not report.changed and report.sites == []
    written, _ = attn_opt.optimize(without_attention, tmp_path / "same.onnx")
    assert written.read_bytes() == without_attention.SerializeToString(deterministic=True)
    onnx.save(without_attention, tmp_path / "in.onnx")
    again, _ = attn_opt.optimize(tmp_path / "in.onnx")
    assert again == without_attention


def test_external_data_stays_external(tmp_path):
    folder = MODELS / "llama-past-dy18s-extdata"
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    fused, report = attn_opt.optimize(model, base_dir=folder)
    assert report.fused == len(report.sites) > 0
    locations = {entry.value for tensor in fused.graph.initializer for entry in tensor.external_data if entry.key == "location"}
    assert locations and all((folder / location).is_file() for location in locations)
    with pytest.raises(attn_opt.InvalidModelError) as raised:
        attn_opt.optimize(model, base_dir=tmp_path)
    assert "cannot be opened" in str(raised.value) and raised.value.remedy == "base_dir= is the folder that it lies in"
    copied = shutil.copytree(folder, tmp_path / "model")
    attn_opt.optimize(copied / "model.onnx", copied / "fused.onnx")
    assert attn_opt.compare(copied / "model.onnx", copied / "fused.onnx")


@pytest.mark.parametrize("options, found", [
    (dict(opset=23), lambda model, report: report.opset["after"] == 23),
    (dict(opset="keep", target="ort-contrib"), lambda model, report: report.opset["after"] == report.opset["before"]),
    (dict(form="4d"), lambda model, report: report.sites[0].form == "4d"),
    (dict(stage="functions"), lambda model, report: {miss.id.split(".")[0] for miss in report.misses} == {"stage"}),
    (dict(target="spec"), lambda model, report: report.fused == 2),
    (dict(only="attention_node"), lambda model, report: report.sites == []),
    (dict(only=["attention_node", "softmax_attention"]), lambda model, report: report.fused == 2),
    (dict(disable=["softmax_attention"]), lambda model, report: report.sites == []),
    (dict(verify="off"), lambda model, report: report.sites[0].verification is None),
    (dict(verify="all-sites"), lambda model, report: not any(site.verification.shared for site in report.sites)),
    (dict(verify="model", dims={"batch": 2, "seq": 5}), lambda model, report: report.model_verification["runs"] > 0),
    (dict(strict=True), lambda model, report: report.fused == 2 and report.assumed == {"sizes-not-empty": 2} and report.refined == 0),
    (dict(exact=True, assume=()), lambda model, report: report.fused == 0),
    (dict(exact=True, assume="sizes-not-empty"), lambda model, report: report.fused == 2),
    (dict(assume="sizes-equal"), lambda model, report: report.fused == 2),
    (dict(allow_unverified=True), lambda model, report: report.fused == 2 and report.unverified == 0),
    (dict(stop_after=1), lambda model, report: report.fused == 1),
    (dict(require_fused="all", allow_none=True), lambda model, report: report.fused == 2),
    (dict(require_fused=2, on_mismatch="fail", external_data="inline"), lambda model, report: report.fused == 2),
    (dict(patterns=CASES / "rules/acme"), lambda model, report: report.fused == 2),
    (dict(opset=np.int64(23), require_fused=np.int32(2)), lambda model, report: report.fused == 2),
    (dict(verify="model", dims={"batch": np.int64(2)}), lambda model, report: report.model_verification["runs"] > 0),
])
def test_options(bert, options, found):
    model, report = attn_opt.optimize(bert, **options)
    assert found(model, report)


@pytest.mark.parametrize("options, where", [
    (dict(opset=12), "opset"), (dict(target="x"), "target"), (dict(form="5d"), "form"), (dict(stage="x"), "stage"), (dict(verify="x"), "verify"),
    (dict(only="x"), "only"), (dict(disable="x"), "disable"), (dict(on_mismatch="x"), "on_mismatch"),
    (dict(external_data="x"), "external_data"), (dict(require_fused=-1), "require_fused"), (dict(require_fused="some"), "require_fused"),
    (dict(verify="model", dims={"batch": [1, 2]}), "dim"), (dict(verify="model", rtol=float("nan")), "rtol"), (dict(verify="model", atol=-1.0), "atol"),
])
def test_wrong_options_are_usage_errors(bert, options, where):
    with pytest.raises(attn_opt.UsageError) as raised:
        attn_opt.optimize(bert, **options)
    assert raised.value.status == 2 and isinstance(raised.value, ValueError) and where in str(raised.value)


@pytest.mark.parametrize("options", [dict(strict="yes"), dict(opset="24"), dict(patterns=[3]), dict(nonsense=1), dict(only=3)])
def test_options_of_another_type(bert, options):
    with pytest.raises(TypeError) as raised:
        attn_opt.optimize(bert, **options)
    ((name, value),) = options.items()
    assert name not in ("strict", "opset") or f"{name}={value!r}" in str(raised.value), "what was given is named"


def test_errors_carry_the_exit_status(bert, bert_path, tmp_path):
    with pytest.raises(attn_opt.RequirementError) as raised:
        attn_opt.optimize(bert, tmp_path / "none.onnx", require_fused=3)
    assert raised.value.status == 1 and raised.value.report.fused == 2 and not (tmp_path / "none.onnx").exists()
    with pytest.raises(attn_opt.RequirementError) as raised:
        attn_opt.optimize(bert_path, check=True)
    assert raised.value.status == 1
    with pytest.raises(attn_opt.InvalidModelError) as raised:
        attn_opt.optimize(tmp_path / "none.onnx")
    assert raised.value.status == 3 and "cannot be opened" in raised.value.what and raised.value.report is None
    with pytest.raises(attn_opt.InvalidModelError):
        attn_opt.optimize(onnx.ModelProto())
    with pytest.raises(attn_opt.OutputError) as raised:
        attn_opt.optimize(bert, tmp_path / "no" / "folder.onnx")
    assert raised.value.status == 5
    assert all(issubclass(kind, attn_opt.Error) for kind in (attn_opt.LimitError, attn_opt.MismatchError, attn_opt.PatternError))
    for wrong in (3, None, b"bytes", object()):
        with pytest.raises(TypeError, match="a model is a path"):
            attn_opt.optimize(wrong)


def test_explain_orders_and_picks(bert):
    explanation = attn_opt.explain(bert)
    assert [site.outcome for site in explanation] == ["fused", "fused"]
    assert "softmax_attention" in str(explanation) and "verdict   verified" in str(explanation[0])
    one = attn_opt.explain(bert, node=explanation[1].name)
    assert len(one) == 1 and one[0].name == explanation[1].name
    for called in (one[0].module, f"main/{one[0].name}"):
        assert [site.name for site in attn_opt.explain(bert, node=called)] == [one[0].name]
    with pytest.raises(attn_opt.UsageError, match="did you mean"):
        attn_opt.explain(bert, node=explanation[1].name[:-1])
    assert "nearest" not in str(attn_opt.explain(bert, strict=True)) and attn_opt.explain(MODELS / "gpt2-past-ts17s.onnx", exact=True)[0].miss.id == "strict.assumed"
    with pytest.raises(TypeError):
        attn_opt.explain(bert, output="x")


def test_progress_is_told_and_can_stop(bert):
    told = []
    attn_opt.optimize(bert, progress=lambda step, part: told.append((step, part)))
    assert told[-1] == ("verifying", 1.0)

    def stop(step, part):
        raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        attn_opt.optimize(bert, progress=stop)


def test_other_threads_run_meanwhile(bert):
    results = []
    threads = [threading.Thread(target=lambda: results.append(attn_opt.optimize(bert)[1].fused)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2, 2, 2, 2]


def test_the_interpreter_is_free_meanwhile():
    """Another thread runs on while C++ works: without the GIL released it would stand still for the whole call."""
    running, ticks = threading.Event(), [0]
    done = threading.Event()

    def tick():
        while not done.is_set():
            if running.is_set():
                ticks[0] += 1
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    running.set()
    attn_opt.optimize(MODELS / "llama-past-ts17s.onnx", verify="all-sites")
    running.clear()
    done.set()
    other.join()
    assert ticks[0] > 10


def test_the_report_is_that_of_the_command(bert_path, tmp_path):
    import os
    import subprocess

    command = os.environ["ATTN_OPT_BINARY"]
    subprocess.run([command, "-q", bert_path, "--report", tmp_path / "report.json"], check=True)
    of_command = json.loads((tmp_path / "report.json").read_text())
    of_python = attn_opt.optimize(bert_path)[1].to_dict()

    def timeless(value):
        if isinstance(value, dict):
            return {key: timeless(one) for key, one in value.items() if "seconds" not in key}
        return [timeless(one) for one in value] if isinstance(value, list) else value

    assert timeless(of_python) == timeless(of_command)
    assert attn_opt.__version__ == of_command["tool"]["version"] == subprocess.run([command, "--version"], capture_output=True, text=True).stdout.split()[-1]
