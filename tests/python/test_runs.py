"""run() and compare(): numbers against ONNX Runtime and ONNX's reference, types against ml_dtypes."""
import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnxruntime
import pytest
from conftest import MODELS

import attn_opt


def model_of(text):
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g ' + text)


def test_as_onnxruntime(bert, bert_inputs):
    session = onnxruntime.InferenceSession(bert.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, bert_inputs)
    outputs = attn_opt.run(bert, bert_inputs)
    assert list(outputs) == [output.name for output in bert.graph.output]
    for one, other in zip(expected, outputs.values()):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_attention_as_the_reference():
    random = np.random.default_rng(0)
    feeds = {name: random.standard_normal(shape).astype(np.float32)
             for name, shape in (("q", (2, 4, 5, 8)), ("k", (2, 2, 6, 8)), ("v", (2, 2, 6, 8)), ("mask", (5, 6)))}
    model = onnx.parser.parse_model("""<ir_version: 11, opset_import: ["" : 24]>
        g (float[2,4,5,8] q, float[2,2,6,8] k, float[2,2,6,8] v, float[5,6] mask) => (float[2,4,5,8] y) {
          y = Attention <is_causal = 1, softcap = 2.0> (q, k, v, mask) }""")
    expected = onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0]
    np.testing.assert_allclose(attn_opt.run(model, feeds)["y"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(attn_opt.run(model, feeds, compute="f64", threads=2)["y"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype, name", [
    (np.float32, "float"), (np.float64, "double"), (np.float16, "float16"), (np.int8, "int8"), (np.int64, "int64"),
    (np.uint16, "uint16"), (np.bool_, "bool"), (ml_dtypes.bfloat16, "bfloat16"), (ml_dtypes.float8_e4m3fn, "float8e4m3fn"),
    (ml_dtypes.int4, "int4"), (ml_dtypes.uint4, "uint4"),
])
def test_types_come_back(dtype, name):
    numbers = np.array([[1, 0, 3], [2, 1, 7]]) if dtype is not ml_dtypes.int4 else np.array([[-8, 0, 3], [-1, 1, 7]])
    given = numbers.astype(dtype)
    model = model_of(f"({name}[2,3] x) => ({name}[2,3] y) {{ y = Identity (x) }}")
    made = attn_opt.run(model, {"x": given})["y"]
    assert made.dtype == given.dtype and made.shape == (2, 3) and made.tolist() == given.tolist()
    made_of_a_view = attn_opt.run(model, {"x": np.asfortranarray(given)})["y"]
    assert made_of_a_view.tolist() == given.tolist()


def test_strings_sequences_scalars():
    model = model_of("(string[n] x) => (string[n] y) { y = Identity (x) }")
    assert attn_opt.run(model, {"x": ["a", "bé"]})["y"].tolist() == ["a", "bé"]
    model = model_of("(float x, float[2] w) => (float z, seq(float[2]) s) { z = Neg (x) s = SequenceConstruct (w, w) }")
    outputs = attn_opt.run(model, {"x": np.float32(2.5), "w": np.array([1, 2], np.float32)})
    assert outputs["z"] == -2.5 and outputs["z"].shape == () and [one.tolist() for one in outputs["s"]] == [[1, 2], [1, 2]]


def test_outputs_outlive_what_they_were_made_of():
    model = model_of("(float[4] x) => (float[4] y, float[4] w) <float[4] c = {1, 2, 3, 4}> { y = Identity (x) w = Identity (c) }")
    outputs = [attn_opt.run(model, {"x": np.full(4, i, np.float32)}) for i in range(20)]
    assert [one["y"].tolist() for one in outputs] == [[i] * 4 for i in range(20)]
    assert outputs[0]["w"].tolist() == [1, 2, 3, 4]
    outputs[0]["y"][0] = 7  # it is the caller's own


def test_wrong_inputs(bert, bert_inputs):
    with pytest.raises(attn_opt.UsageError, match="it has input_ids, attention_mask"):
        attn_opt.run(bert, {"x": np.ones(1)})
    with pytest.raises(attn_opt.InvalidModelError):
        attn_opt.run(bert, {"input_ids": bert_inputs["input_ids"]})
    with pytest.raises(attn_opt.UsageError, match="complex"):
        attn_opt.run(bert, {"input_ids": np.ones(3, np.complex64)})
    with pytest.raises(attn_opt.UsageError):
        attn_opt.run(bert, bert_inputs, compute="f32")
    with pytest.raises(attn_opt.LimitError) as raised:
        attn_opt.run(bert, bert_inputs, memory_limit=1000)
    assert raised.value.status == 3
    unknown = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17, "acme" : 1]> g (float[n] x) => (float[n] y) { y = acme.Op (x) }')
    with pytest.raises(attn_opt.UnsupportedError, match="unsupported: acme::Op") as raised:
        attn_opt.run(unknown, {"x": np.ones(3, np.float32)})
    assert raised.value.status == 3


def test_compare(bert, bert_path):
    fused, _ = attn_opt.optimize(bert)
    same = attn_opt.compare(bert_path, fused, dims={"batch": 2, "seq": [1, 5]}, seeds=2)
    assert same and same.agrees and len(same) == 1 and "agrees" in str(same) and 0 <= same[0].absolute < 1e-4
    wrong = onnx.ModelProto()
    wrong.CopyFrom(fused)
    next(attribute for node in wrong.graph.node if node.op_type == "Attention"
         for attribute in node.attribute if attribute.name == "scale").f *= 2
    different = attn_opt.compare(bert, wrong)
    assert not different and different[0].beyond > 0 and "differs" in str(different)
    with pytest.raises(attn_opt.MismatchError) as raised:
        attn_opt.compare(bert, wrong, must_agree=True)
    assert raised.value.status == 4
    assert attn_opt.compare(bert, wrong, atol=1e9)
    with pytest.raises(attn_opt.MismatchError):
        attn_opt.compare(bert, MODELS / "gpt2-past-ts17s.onnx")
    with pytest.raises(attn_opt.UsageError):
        attn_opt.compare(bert, fused, seeds=0)
