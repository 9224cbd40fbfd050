"""attn_opt in one process with whatever else brings ONNX and protobuf, in every order."""
import importlib.util
import itertools
import subprocess
import sys

import pytest
from conftest import MODELS

OTHERS = [name for name in ("onnx", "onnxruntime", "torch") if importlib.util.find_spec(name)]
WORK = {
    "attn_opt": "_, report = attn_opt.optimize({model!r}); assert report.fused == 2; attn_opt.explain({model!r})",
    "onnx": "onnx.checker.check_model({model!r}); onnx.shape_inference.infer_shapes(onnx.load({model!r}))",
    "onnxruntime": "onnxruntime.InferenceSession({model!r}, providers=['CPUExecutionProvider'])",
    "torch": "assert torch.softmax(torch.ones(2, 2) @ torch.ones(2, 2), -1).sum().item() == 2; torch.tensor([1]).numpy()",
}


@pytest.mark.parametrize("order", list(itertools.permutations(["attn_opt", *OTHERS])), ids=",".join)
def test_order(order):
    model = str(MODELS / "bert-ts14s.onnx")
    imports = "\n".join(f"import {name}" for name in order)
    work = "\n".join(WORK[name].format(model=model) for name in (*order, *reversed(order)))
    done = subprocess.run([sys.executable, "-c", f"{imports}\n{work}\nprint('done')"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr


def test_alone_it_needs_only_numpy(tmp_path):
    code = f"""
import sys
for name in ("onnx", "onnx_ir", "onnxscript", "onnxruntime", "torch", "ml_dtypes"):
    sys.modules[name] = None
import attn_opt
_, report = attn_opt.optimize({str(MODELS / 'bert-ts14s.onnx')!r}, check=False, output=sys.argv[1])
assert report.fused == 2
try:
    attn_opt.optimize({str(MODELS / 'bert-ts14s.onnx')!r})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "fused.onnx"], capture_output=True, text=True)
    assert done.returncode == 0 and "install onnx, or give output=PATH" in done.stdout, done.stderr
