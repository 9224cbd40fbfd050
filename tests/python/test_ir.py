"""Objects of onnx_ir, onnxscript and torch.onnx, and the pass of onnx_ir."""
import dataclasses

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes
import onnxscript
import pytest
from conftest import MODELS

import attn_opt
from attn_opt.ir_pass import FuseAttention


def operators(model):
    return [node.op_type for node in model.graph]


def test_an_ir_model_becomes_one(bert):
    model = ir.from_proto(bert)
    before = operators(model)
    fused, report = attn_opt.optimize(model)
    assert isinstance(fused, ir.Model) and operators(fused).count("Attention") == 2 and operators(model) == before
    assert report.fused == 2 and attn_opt.compare(model, fused)
    again, report = attn_opt.optimize(fused)
    assert again is fused and not report.changed


def test_external_tensors_stay_where_they_are(tmp_path):
    folder = MODELS / "llama-past-dy18s-extdata"
    model = ir.load(folder / "model.onnx")
    fused, report = attn_opt.optimize(model)
    assert report.fused > 0
    external = [value.const_value for value in fused.graph.initializers.values() if isinstance(value.const_value, ir.ExternalTensor)]
    assert external and all(np.isfinite(tensor.numpy()).all() for tensor in external)
    external[0].base_dir = tmp_path
    with pytest.raises(attn_opt.UsageError, match="several folders"):
        attn_opt.optimize(fused)


def test_the_pass_in_a_pipeline(bert):
    fuse = FuseAttention(verify="all-sites")
    pipeline = onnx_ir.passes.Sequential(fuse, onnx_ir.passes.common.RemoveUnusedNodesPass())
    model = ir.from_proto(bert)
    result = pipeline(model)
    assert result.model is model and result.modified and operators(result.model).count("Attention") == 2 and fuse.report.fused == 2
    onnx.checker.check_model(ir.to_proto(result.model), full_check=True)
    again = fuse(result.model)
    assert not again.modified and again.model is result.model and fuse.report.fused == 0
    for option in ("output", "check"):
        with pytest.raises(attn_opt.UsageError):
            FuseAttention(**{option: True})


def test_a_program_keeps_its_kind(bert):
    @dataclasses.dataclass
    class Program:  # what torch.onnx.export(dynamo=True) returns has its model so
        model: ir.Model
        name: str

    program = Program(ir.from_proto(bert), "program")
    fused, _ = attn_opt.optimize(program)
    assert isinstance(fused, Program) and fused.name == "program" and operators(fused.model).count("Attention") == 2
    assert operators(program.model).count("Attention") == 0


def test_an_onnxscript_function():
    op = onnxscript.opset18

    @onnxscript.script()
    def attention(q: onnxscript.FLOAT[1, 2, 5, 8], k: onnxscript.FLOAT[1, 2, 5, 8], v: onnxscript.FLOAT[1, 2, 5, 8]) -> onnxscript.FLOAT[1, 2, 5, 8]:
        scores = op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2]))
        return op.MatMul(op.Softmax(scores), v)

    fused, report = attn_opt.optimize(attention)
    assert isinstance(fused, onnx.ModelProto) and report.fused == 1
    assert attn_opt.compare(attention, fused)
