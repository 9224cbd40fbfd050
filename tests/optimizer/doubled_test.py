"""Models in which a value is combined with itself, again and again, at each place of attention.

    doubled_test.py ATTN_OPT [TIMES]

What follows a value once for each way that leads to it takes 2^TIMES steps on them. The command must end, with a model that is valid,
within a time that is far above what it takes.
"""

import concurrent.futures
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

import onnx
import onnx.checker
import onnx.parser

MOST_SECONDS = 240

# Nodes that make {y} of {x}; {i} is a name of their own.
OF_NUMBERS = {
    "Add": "{y} = Add ({x}, {x})",
    "Mul": "{y} = Mul ({x}, {x})",
    "Max": "{y} = Max ({x}, {x})",
    "Sub of a half": "{i} = Mul ({x}, half) {y} = Sub ({x}, {i})",
    "Where of both signs": "{i} = Neg ({x}) {y} = Where (flag, {x}, {i})",
    "Where of twice the same": "{y} = Where (flag, {x}, {x})",
    "Where of a sum": "{i} = Add ({x}, addend) {y} = Where (flag, {x}, {i})",
    "Sum": "{i} = Neg ({x}) {y} = Sum ({x}, {i}, {x})",
    "halves": "{i} = Max ({x}, zero) {i}_low = Min ({x}, zero) {y} = Add ({i}, {i}_low)",
    "Concat and Split": "{i} = Concat <axis = -1> ({x}, {x}) {y}, {i}_rest = Split <axis = -1, num_outputs = 2> ({i})",
}
OF_MATRICES = OF_NUMBERS | {
    "Transpose twice": "{i} = Transpose <perm = [0, 1, 3, 2]> ({x}) {i}_back = Transpose <perm = [0, 1, 3, 2]> ({i}) {y} = Add ({x}, {i}_back)",
    "rows and columns divided by sums": "{i}_row = ReduceSum ({x}, last) {i} = Div ({x}, {i}_row) "
                                        "{i}_column = ReduceSum ({i}, before_last) {i}_more = Add ({i}_column, tiny) "
                                        "{y} = Div ({i}, {i}_more)"}
OF_CONDITIONS = {
    "And": "{y} = And ({x}, {x})",
    "Or": "{y} = Or ({x}, {x})",
    "And of Not of Not": "{i} = Not ({x}) {i}_not = Not ({i}) {y} = And ({x}, {i}_not)",
    "Where": "{i} = Not ({x}) {i}_not = Not ({i}) {y} = Where (flag, {x}, {i}_not)",
}
OF_INTEGERS = {
    "Add": "{y} = Add ({x}, {x})",
    "Max": "{y} = Max ({x}, {x})",
    "Add and Div": "{i} = Add ({x}, {x}) {y} = Div ({i}, two)",
    "Sub of itself": "{i} = Sub ({x}, {x}) {y} = Add ({x}, {i})",
    "Div by itself": "{i} = Div ({x}, {x}) {y} = Mul ({x}, {i})",
}

# A value is read as {value} and made, or given, under its name at the beginning of a line.
AROUND_SOFTMAX = """k_transposed = Transpose <perm = [0, 1, 3, 2]> ({k})
product = MatMul ({q}, k_transposed)
scaled = Mul (product, {factor})
scores = Add (scaled, {bias})
probabilities = Softmax <axis = -1> ({scores})
result = MatMul ({probabilities}, {v})
y = Identity ({result})"""
MASKED = """keys = Shape <start = 2, end = 3> (v)
sizes = Concat <axis = 0> (batch_and_heads, {keys}, width)
rows_of_v = Reshape (v, sizes)
k_transposed = Transpose <perm = [0, 1, 3, 2]> (k)
product = MatMul (q, k_transposed)
length = Shape <start = 2, end = 3> (q)
end = Squeeze (length)
last_key = Squeeze (keys)
row = Range (none, end, one)
column = Range (none, last_key, one)
rows = Unsqueeze (row, last)
causal = GreaterOrEqual ({rows}, column)
kept = And (causal, {keep})
scores = Where (kept, product, lowest)
probabilities = Softmax <axis = -1> ({scores})
is_nan = IsNaN (probabilities)
guarded = Where ({is_nan}, zero, {probabilities})
y = MatMul (guarded, rows_of_v)"""
WRITTEN_OUT = """k_transposed = Transpose <perm = [0, 1, 3, 2]> (k)
scores = MatMul (q, k_transposed)
largest = ReduceMax (scores, last)
lowered = Sub (scores, {largest})
weights = Exp (lowered)
total = ReduceSum ({weights}, last)
probabilities = Div ({weights}, {total})
y = MatMul (probabilities, v)"""
BESIDE_OTHERS = """k_transposed = Transpose <perm = [0, 1, 3, 2]> (k)
scores = MatMul (q, k_transposed)
probabilities = Softmax <axis = -1> (scores)
weights = Add (probabilities, bias)
y = MatMul ({weights}, v)"""
HEAD = """<ir_version: 9, opset_import: ["" : 18]>
doubled (float[2,2,l,4] q, float[2,2,s,4] k, float[2,2,s,4] v, float[2,1,l,s] bias, bool[2,1,l,s] keep, float[1] factor,
         bool[1] flag, float[1] addend) => (float[2,2,l,4] y)
<float half = {0.5}, float tiny = {1e-6}, float zero = {0}, float lowest = {-3.4e38}, int64 none = {0}, int64 one = {1}, int64 two = {2},
 int64[1] last = {-1}, int64[1] before_last = {-2}, int64[1] width = {4}, int64[2] batch_and_heads = {2, 2}> {
"""
PLACES = {
    AROUND_SOFTMAX: dict.fromkeys(("q", "k", "v", "bias", "scores", "probabilities", "result"), OF_MATRICES) | {"factor": OF_NUMBERS},
    MASKED: {"keep": OF_CONDITIONS, "keys": OF_INTEGERS, "rows": OF_INTEGERS, "is_nan": OF_CONDITIONS, "probabilities": OF_MATRICES},
    WRITTEN_OUT: {"largest": OF_NUMBERS, "weights": OF_MATRICES, "total": OF_NUMBERS},
    BESIDE_OTHERS: {"weights": OF_MATRICES}}


class Reads(dict):
    """Names that lines read: a value's own, but for those that are held."""

    def __missing__(self, name):
        return name


def chain(place, step, times):
    """Lines that combine PLACE with itself TIMES times, and the name of the last."""
    names = [place] + [f"{place}_{i}" for i in range(1, times + 1)]
    return [step.format(x=before, y=name, i=f"{name}_inner") for before, name in zip(names, names[1:])], names[-1]


def doubled(program, place, step, times):
    combined, last = chain(place, step, times)
    reads = Reads({place: last})
    lines = [] if f"\n{place} = " in "\n" + program else list(combined)
    for line in program.split("\n"):
        lines.append(line.format_map(reads))
        if line.startswith(f"{place} = "):
            lines += combined
    return onnx.parser.parse_model(HEAD + "\n".join(lines) + "\n}")


def layers(count):
    """COUNT attentions one behind the other, of the same keys and values: each is to be verified alone."""
    lines = ["k_transposed = Transpose <perm = [0, 1, 3, 2]> (k)"]
    for i in range(count):
        given, made = f"x{i}" if i else "q", f"x{i + 1}" if i + 1 < count else "y"
        lines += [f"keys{i} = Mul (k_transposed, half)", f"scores{i} = MatMul ({given}, keys{i})",
                  f"probabilities{i} = Softmax <axis = -1> (scores{i})", f"weighed{i} = MatMul (probabilities{i}, k)",
                  f"{made} = Add ({given}, weighed{i})"]
    return onnx.parser.parse_model(HEAD + "\n".join(lines) + "\n}")


def limit_time():
    """Of the CPU, which other programs on the machine have no part in."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, 2 * MOST_SECONDS))


def fault(attn_opt, name, model, folder):
    """What is wrong with what ATTN_OPT makes of MODEL; empty if nothing is."""
    before, after = folder / f"{name}.onnx", folder / f"{name}.fused.onnx"
    onnx.save(model, before)
    done = subprocess.run([attn_opt, before, "-o", after, "-q"], capture_output=True, text=True, preexec_fn=limit_time)
    if done.returncode == -signal.SIGXCPU:
        return f"{name}: not done after {MOST_SECONDS} s of CPU time"
    if done.returncode != 0:
        return f"{name}: exit status {done.returncode}: {done.stderr}"
    try:
        onnx.checker.check_model(after, full_check=True)
    except Exception as error:
        return f"{name}: {error}"
    return ""


def main(attn_opt, times):
    models = {f"{number}_{place}_{step_name}".replace(" ", "_"): doubled(program, place, step, times)
              for number, (program, places) in enumerate(PLACES.items()) for place, steps in places.items()
              for step_name, step in steps.items()}
    models["layers"] = layers(400)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        run = lambda name: fault(attn_opt, name, models[name], pathlib.Path(folder))
        faults = [text for text in pool.map(run, models) if text]
    print(f"{len(models)} models, {len(faults)} with a fault", *faults, sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40))
