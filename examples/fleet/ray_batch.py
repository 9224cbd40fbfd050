"""All models below a folder on a Ray cluster, a task a model; the folders lie on a file system that all nodes share.

    python ray_batch.py MODELS -o OUT [--address auto] [--cpus 1] [--memory 8GB] [options of attn-opt batch]

The status is that of the worst model, as of attn-opt batch. Run again, it does what is left.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys

import ray


def optimise(model, root, out, options):
    """Runs in a worker: status of attn-opt, what it said, and the node that ran it."""
    words = ["attn-opt", "batch", model, "--root", root, "--output", out, "--jobs", "1", "--quiet", *options]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    return made.returncode, made.stderr.strip(), ray.get_runtime_context().get_node_id()


def size(text):
    """Bytes of "8GB"."""
    for exponent, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * 10**exponent)
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", help="folder that is searched for .onnx files")
    parser.add_argument("-o", "--output", required=True, help="folder for the optimised models")
    parser.add_argument("--address", help="of the cluster; without, Ray starts on this machine")
    parser.add_argument("--cpus", type=float, default=1, help="processors that a model takes")
    parser.add_argument("--memory", type=size, default=0, help="memory that a model takes, as 8GB")
    parser.add_argument("--report", action="append", default=[], help="report on all models, as of attn-opt batch")
    return parser.parse_known_args()


def main():
    given, options = arguments()
    root, out = os.path.abspath(given.models), os.path.abspath(given.output)
    models = sorted(str(path) for path in pathlib.Path(root).rglob("*.onnx"))
    ray.init(address=given.address, log_to_driver=False)
    task = ray.remote(optimise).options(num_cpus=given.cpus, memory=given.memory or None, max_retries=2)
    waiting = {task.remote(model, root, out, options): model for model in models}
    nodes = collections.Counter()
    while waiting:
        (done,), _ = ray.wait(list(waiting))
        model = waiting.pop(done)
        try:
            status, said, node = ray.get(done)
        except ray.exceptions.RayError as error:  # the last run below tries it again, here
            print(f"{model}: {type(error).__name__}", file=sys.stderr)
            continue
        nodes[node] += 1
        print(f"[{len(models) - len(waiting)}/{len(models)}] status {status}  {model}  {said}", flush=True)
    for node, count in nodes.items():
        print(f"node {node[:8]}: {count} models")
    ray.shutdown()
    reports = [word for report in given.report for word in ("--report", report)]
    summary = ["attn-opt", "batch", root, "--root", root, "--output", out, *reports, *options]
    sys.exit(subprocess.run(summary, check=False).returncode)


if __name__ == "__main__":
    main()
