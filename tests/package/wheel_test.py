"""Tries attn_opt as installed from a wheel: the command, the module, and both beside what else brings protobuf.

    wheel_test.py SOURCE          run by the Python of a fresh virtual environment
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import attn_opt
import onnx

source = pathlib.Path(sys.argv[1])
model = source / "testdata/models/bert-ts14s.onnx"
site_packages = pathlib.Path(attn_opt.__file__).resolve().parent.parent


def expect(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def mapped_libraries():
    """Paths of the shared libraries that this process has."""
    return {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if ".so" in line}


expect(pathlib.Path(sys.prefix).resolve() in site_packages.parents, "the package is the one that was installed")
fused, report = attn_opt.optimize(onnx.load(model))
expect(report.fused == 2 and attn_opt.compare(model, fused), "optimize and compare work")
grafted = [path for path in mapped_libraries() if any(name in path for name in ("libprotobuf", "libre2", "libfmt", "libspdlog"))]
print("\n".join(sorted(grafted)))
expect(grafted and all(path.startswith(str(site_packages)) for path in grafted), "libraries come from the wheel")

measured = subprocess.run([sys.executable, "-m", "attn_opt.effect", source / "testdata/models/llama-past-ts17s.onnx", "--repeats", "2"],
                          capture_output=True, text=True)
expect(measured.returncode == 0 and "portable" in measured.stdout, f"attn_opt.effect is installed: {measured.stderr}")

command = shutil.which("attn-opt", path=str(pathlib.Path(sys.executable).parent))
expect(command, "the command is installed")
version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
print(version, end="")
expect(version == f"attn-opt {attn_opt.__version__}\n", "the command is of the package's version")
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([command, "-q", model, "-o", f"{folder}/fused.onnx"], check=True)
    expect(onnx.load(f"{folder}/fused.onnx") == fused, "the command does the same")
status = subprocess.run([command, "none.onnx"], capture_output=True).returncode
expect(status == 3, "the command's exit status comes through")
expect((site_packages / "attn_opt/docs/python.md").is_file(), "the pages that docstrings name are there")
subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", source / "tests/python/test_imports.py"], check=True)
