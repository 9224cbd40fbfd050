"""The types that the package declares."""
import os
import pathlib
import subprocess
import sys

import attn_opt

PACKAGE = pathlib.Path(attn_opt.__file__).parent
USE = """
from typing import Optional, Union
import attn_opt

@attn_opt.pattern(anchor="Div")
def mine(node: attn_opt.Node, context: attn_opt.Context) -> Optional[attn_opt.Sdpa]:
    shape = context.facts.shape(node.outputs[0] or node.inputs[0])  # WRONG: may be None
    return None

model, report = attn_opt.optimize("m.onnx", patterns=[mine], strict=True)
fused: int = report.fused
name: str = report.sites[0].name
text: int = report.to_json()  # WRONG: a str
attn_opt.optimize("m.onnx", strict=3)  # WRONG: a bool
"""


def mypy(*arguments, **options):
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", *map(str, arguments)], capture_output=True,
                          text=True, env=environment, **options)
    return done.stdout


def test_the_package_is_consistent():
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_core.pyi").exists()
    assert mypy("-p", "attn_opt").startswith("Success"), mypy("-p", "attn_opt")


def test_users_are_told(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    found = mypy("use.py", cwd=tmp_path)
    expected = [number for number, line in enumerate(USE.splitlines(), 1) if "WRONG" in line]
    assert [int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line] == expected, found
