"""Installs attn-opt into a prefix of its own and builds and runs examples/consumer and examples/rewrite against it alone.

    consumer_test.py CMAKE BUILD SOURCE WORK [CMAKE_ARGUMENT...]
"""
import pathlib
import shutil
import subprocess
import sys

cmake, build, source, work, *arguments = sys.argv[1:]
work = pathlib.Path(work).resolve()
# The model has an attention that none of attn-opt's own patterns knows.
model = pathlib.Path(source) / "testdata/cases/rules/odds.onnxtxt"


def run(*command):
    print("$", *command, flush=True)
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"status {done.returncode}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


shutil.rmtree(work, ignore_errors=True)
run(cmake, "--install", build, "--prefix", work / "first")
shutil.move(work / "first", work / "prefix")  # the package must not know where it was installed
prefix = work / "prefix"
expect(not list(prefix.rglob("*.cpp")), "only headers and libraries are installed")


def built(name):
    """The folder in which examples/NAME was built."""
    shutil.copytree(pathlib.Path(source) / "examples" / name, work / name)
    folder = work / f"{name}-build"
    run(cmake, "-G", "Ninja", "-S", work / name, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", *arguments)
    run(cmake, "--build", folder)
    return folder


consumer, rewrite = built("consumer"), built("rewrite") / "rewrite"

command = next(prefix.glob("bin/attn-opt"))
for file, words in (("share/bash-completion/completions/attn-opt", ["completion", "bash"]),
                    ("share/zsh/site-functions/_attn-opt", ["completion", "zsh"]),
                    ("share/fish/vendor_completions.d/attn-opt.fish", ["completion", "fish"]),
                    ("share/man/man1/attn-opt.1", ["man"])):
    expect((prefix / file).read_text() == run(command, *words), f"{file} is what the command prints")
for kind in ("report", "batch", "baseline", "effect"):
    expect((prefix / f"share/attn-opt/schema/{kind}-1.schema.json").is_file(), f"the schema of a {kind} is installed")
expect("0 fused" in run(command, model), "the command alone does not know the spelling")
output = run(consumer / "fuse", model, work / "fused.onnx")
expect("fused  [odds_attention]" in output, "the consumer's own pattern fuses")
expect("verified" in output, "and is verified")
run(command, "compare", model, work / "fused.onnx")
softmax = pathlib.Path(source) / "testdata/models/bert-ts14s.onnx"
expect("[softmax_attention]" in run(consumer / "fuse", softmax, work / "bert.onnx"), "the registered patterns are linked")
(work / "empty.onnx").touch()
refused = subprocess.run([consumer / "fuse", work / "empty.onnx", work / "none.onnx"], stderr=subprocess.PIPE, text=True)
expect(refused.returncode == 3 and "is empty" in refused.stderr, "an error has its exit status")

rewrites = pathlib.Path(source) / "testdata/cases/rewrites"
applied = run(rewrite, rewrites / "rule.onnxtxt", work / "rewritten.onnx")
expect("rewritten  [negated_relu]" in applied and "1 of 1 applied" in applied, "the program's own rewrite is applied")
run(command, "compare", rewrites / "rule.onnxtxt", work / "rewritten.onnx")
expect("negated_relu at y: no-match: 'n' is Sin, not Neg" in run(rewrite, "-v", rewrites / "rule_careless.onnxtxt", work / "same.onnx"),
       "what keeps it from matching is told")
