"""The recipes of docs/fleet.md: examples/fleet, on the bundled models, one of which cannot be read."""

import contextlib
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

from project import environment_with, expect, shell


@contextlib.contextmanager
def shared_folder(attn_opt, source):
    """A folder with models, as all machines see it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(source / "testdata/models", folder / "models")
        (folder / "models/bad.onnx").write_text("no model")
        yield folder


def check_summary(folder, made, name="summary.json", out="optimised"):
    """All models are done, none twice, and the worst status is that of the last run."""
    expect(made.returncode == 3, made.stdout)
    report = json.loads((folder / name).read_text())
    models = [str(path.relative_to(folder)) for path in sorted((folder / "models").rglob("*.onnx"))]
    expect(sorted(model["input"].removeprefix(f"{folder}/") for model in report["models"]) == models, report["models"])
    expect(report["summary"]["by_status"] == {"0": len(models) - 1, "3": 1}, report["summary"])
    expect(f"{len(models) - 1} finished before and unchanged" in made.stdout, made.stdout)
    for model in models:
        written = (folder / out / pathlib.Path(model).relative_to("models")).is_file()
        expect(written == (model != "models/bad.onnx"), model)


def gnu_parallel(attn_opt, source, _blocks):
    if shutil.which("parallel") is None:
        return "not run: there is no GNU parallel"
    with shared_folder(attn_opt, source) as folder:
        made = shell(attn_opt, folder, 'exec "$1" models optimised', source / "examples/fleet/parallel.sh", JOBS="2")
        check_summary(folder, made)
        log = (folder / "parallel.log").read_text().splitlines()[1:]
        expect(sorted({line.split("\t")[6] for line in log}) == ["0", "3"], "the same statuses in its log")
    return None


def slurm(attn_opt, source, _blocks):
    script = source / "examples/fleet/slurm.sbatch"
    text = script.read_text()
    tasks = 1 + int(re.search(r"--array=0-(\d+)", text)[1])
    before, _, after = [line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   ")]
    last = re.search(r"--wrap '(.*)'", after)[1]
    with shared_folder(attn_opt, source) as folder:
        expect(shell(attn_opt, folder, before).returncode == 0, before)
        statuses = set()
        for task in range(tasks):
            made = shell(attn_opt, folder, f"exec bash {script}", SLURM_ARRAY_TASK_ID=str(task),
                         SLURM_ARRAY_TASK_COUNT=str(tasks), SLURM_CPUS_PER_TASK="2")
            statuses.add(made.returncode)
        expect(3 in statuses and 0 in statuses, statuses)
        check_summary(folder, shell(attn_opt, folder, last))


def kubernetes(attn_opt, source, _blocks):
    text = (source / "examples/fleet/kubernetes.yaml").read_text()
    job = yaml.safe_load(text)["spec"]
    (container,) = job["template"]["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    expect(int(environment["PARTS"]) == job["completions"], "a part for each index")
    last = next(line[4:] for line in text.splitlines() if line.startswith("#   attn-opt"))
    with shared_folder(attn_opt, source) as folder:
        for index in range(job["completions"]):
            made = subprocess.run([*container["command"], *container["args"]], cwd=folder, capture_output=True, text=True, check=False,
                                  env=environment_with(attn_opt) | environment | {"DATA": str(folder), "JOB_COMPLETION_INDEX": str(index)})
            expect(made.returncode in (0, 3), made)
        check_summary(folder, shell(attn_opt, folder, last.replace("/data", str(folder))))


def ray_cluster(attn_opt, source, _blocks):
    if importlib.util.find_spec("ray") is None:
        return "not run: there is no ray"
    from ray.cluster_utils import Cluster  # pylint: disable=import-outside-toplevel

    with shared_folder(attn_opt, source) as folder:
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "env_vars": environment_with(attn_opt)})
        for _ in range(2):
            cluster.add_node(num_cpus=1, env_vars=environment_with(attn_opt))
        made = shell(attn_opt, folder, 'exec "$@"', sys.executable, source / "examples/fleet/ray_batch.py", "models", "-o",
                     "optimised", "--address", cluster.address, "--report", "summary.json")
        cluster.shutdown()
        check_summary(folder, made)
        expect(made.stdout.count("\nnode ") == 2, "both workers had models: " + made.stdout)
    return None


FLEET = (gnu_parallel, slurm, kubernetes, ray_cluster)
