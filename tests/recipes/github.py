"""The action, the workflow of docs/ci.md, and what a pull request that loses a fusion gets from them."""

import json
import os
import pathlib
import re
import sys
import tempfile

import jsonschema
import onnx
import yaml

from project import expect, project

SARIF = pathlib.Path(sys.executable).parent.parent / "schemas/sarif-2.1.0.json"


def evaluated(text, values):
    """TEXT with GitHub's expressions in it replaced: those that the action uses."""
    return re.sub(r"\$\{\{ *([^ }]+) *\}\}", lambda match: values[match[1]], text)


class Action:
    """action.yml, run step by step as a runner does, for the project USER."""

    def __init__(self, source, user, given):
        self.about = yaml.safe_load((source / "action.yml").read_text())
        unknown = set(given) - set(self.about["inputs"])
        expect(not unknown, f"docs/ci.md gives the action inputs that it has not: {unknown}")
        inputs = {name: given.get(name, about.get("default")) for name, about in self.about["inputs"].items()}
        expect(None not in inputs.values(), "an input that is required is not given")
        self.user, self.status, self.outputs = user, 0, {}
        self.values = {f"inputs.{name}": value for name, value in inputs.items()}
        self.values |= {"github.action_path": str(source), "runner.arch": "X64"}
        self.files = {name: user.folder / f".{name}" for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
        for file in self.files.values():
            file.write_text("")

    def step(self, step, **more):
        """What it writes to GITHUB_OUTPUT is known to later steps."""
        if "uses" in step:
            expect(step["uses"].startswith("actions/cache@"), "the action uses no other")
            return [evaluated(value, self.values) for value in step["with"].values()]
        expect(step["shell"] == "bash", "steps are for bash")
        environment = {name: evaluated(value, self.values) for name, value in step.get("env", {}).items()}
        self.files["GITHUB_OUTPUT"].write_text("")
        made = self.user.bash(step["run"], **environment, **{name: str(file) for name, file in self.files.items()}, **more)
        print(made.stdout, end="")
        self.status = self.status or made.returncode
        self.outputs = dict(line.split("=", 1) for line in self.files["GITHUB_OUTPUT"].read_text().splitlines())
        self.values |= {f"steps.{step.get('id')}.outputs.{name}": value for name, value in self.outputs.items()}
        return made

    def run(self):
        """The job's status, outputs and summary."""
        for step in self.about["runs"]["steps"]:
            self.step(step)
        expect(self.files["GITHUB_PATH"].read_text() == "", "attn-opt was on PATH: nothing is built")
        return self.status, self.outputs, self.files["GITHUB_STEP_SUMMARY"].read_text()


def workflow_steps(blocks):
    """The action's step of the page's workflow, the upload's and that of the comment."""
    texts = blocks("docs/ci.md", "yaml")
    (workflow,) = [yaml.safe_load(text) for text in texts if text.startswith("# .github/workflows/attention.yml\n")]
    steps = workflow["jobs"]["attention"]["steps"]
    (action,) = [step for step in steps if step["uses"].startswith("./attn-opt")]
    (checkout,) = [step for step in steps if step["uses"].startswith("actions/checkout@")]
    expect(checkout.get("with", {}).get("submodules"), "./attn-opt is a submodule, which is not checked out by default")
    (upload,) = [step for step in steps if "upload-sarif" in step["uses"]]
    (comment,) = [step for text in texts if "gh pr comment" in text for step in yaml.safe_load(text)]
    return action, upload, comment


def github(attn_opt, source, blocks):
    step, upload, _ = workflow_steps(blocks)
    with project(attn_opt, source) as user:
        status, outputs, summary = Action(source, user, step["with"]).run()
        expect((status, outputs["status"]) == (0, "0"), outputs)
        expect("### attn-opt" in summary, "the job's summary has the report")
        expect((user.folder / upload["with"]["sarif_file"]).is_file(), "what is uploaded is there")
        expect(outputs["sarif"] == upload["with"]["sarif_file"], "and is the action's output")
        user.lose_a_fusion()
        status, outputs, summary = Action(source, user, step["with"]).run()
        expect((status, outputs["status"]) == (1, "1"), outputs)
        expect("is no longer fused" in summary, summary)
        action = Action(source, user, {"models": "models\n", "output": "fused", "options": "--no-config --jobs 1"})
        expect(action.run()[0] == 0 and (user.folder / "fused/sdpa.onnx").is_file(), "the other inputs of the action")


def github_keeps_what_it_built(_attn_opt, source, _blocks):
    """Where attn-opt is not on PATH, what the cache brought back is taken and nothing is compiled."""
    if os.geteuid() != 0:
        return "not run: setup installs packages as root"
    with tempfile.TemporaryDirectory() as name, project(pathlib.Path("/nowhere/attn-opt"), source) as user:
        cache = pathlib.Path(name)
        for kept in pathlib.Path(os.environ.get("ATTN_OPT_CACHE", pathlib.Path.home() / ".cache/attn-opt")).iterdir():
            (cache / kept.name).symlink_to(kept)
        action = Action(source, user, {"models": "models"})
        sources, keep, build = action.about["runs"]["steps"][:3]
        action.step(sources, ATTN_OPT_CACHE=name)
        path, key, _ = action.step(keep)
        expect(path == name and len(key) > 20, "what is kept, and for which sources")
        command = cache / f"command-{action.outputs['key']}/attn-opt"
        command.parent.mkdir()
        command.symlink_to("/bin/true")
        made = action.step(build, ATTN_OPT_CACHE=name)
        expect(made.returncode == 0 and "Building" not in made.stdout, made.stdout)
        expect(action.files["GITHUB_PATH"].read_text() == f"{command.parent}\n", "later steps find it")
    return None


def put_before_softmax(path, op):
    """OP between the scores and the first softmax of the model in PATH, as a change of the program would."""
    model = onnx.load(path)
    softmax = next(index for index, node in enumerate(model.graph.node) if node.op_type == "Softmax")
    node = model.graph.node[softmax]
    added = onnx.helper.make_node(op, [node.input[0]], ["squashed"], name="squash")
    added.metadata_props.extend(node.metadata_props)
    node.input[0] = "squashed"
    model.graph.node.insert(softmax, added)
    onnx.save(model, path)


def pull_request(attn_opt, source, blocks):
    """The files that a pull request gets whose model lost a fusion: alert, summary and comment."""
    step, _, comment = workflow_steps(blocks)
    with project(attn_opt, source) as user:
        (user.folder / "models/encoder.onnx").write_bytes((source / "testdata/examples/encoder.onnx").read_bytes())
        made = user.bash("attn-opt batch models --baseline attn.json --update-baseline")
        expect(made.returncode == 0, made.stdout)
        put_before_softmax(user.folder / "models/encoder.onnx", "Elu")
        status, outputs, summary = Action(source, user, step["with"]).run()
        expect(status == 1, "the job fails")

        sarif = json.loads((user.folder / outputs["sarif"]).read_text())
        jsonschema.Draft4Validator(json.loads(SARIF.read_text())).validate(sarif)
        (lost,) = [result for result in sarif["runs"][0]["results"] if result["level"] == "error"]
        places = [(place["physicalLocation"]["artifactLocation"]["uri"], place["physicalLocation"]["region"].get("startLine"))
                  for place in lost["locations"]]
        expect(("export.py", 12) in places, f"the line of the program: {places}")
        expect("layers.layers.0.self_attn" in lost["message"]["text"] and "Elu" in lost["message"]["text"], lost["message"])

        said = summary.replace("\\", "")
        expect("attention layers.layers.0.self_attn (export.py:12) is no longer fused: Elu" in said, summary)
        expect("```mermaid\n" in summary, "GitHub draws it")

        program = user.folder / "bin/gh"
        program.parent.mkdir()
        program.write_text('#!/bin/bash\necho "$*"\n[[ "$1 $2" == "pr comment" ]] && cat "${@: -1}"\n')
        program.chmod(0o755)
        said = user.bash(f'PATH="$PWD/bin:$PATH"\n{comment["run"]}', GITHUB_HEAD_REF="feature")
        expect(said.returncode == 0 and said.stdout.startswith("pr comment feature "), said.stdout)
        expect(summary in said.stdout, "the comment is the job's summary")


GITHUB = (github, github_keeps_what_it_built, pull_request)
