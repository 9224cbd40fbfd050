"""Runs every recipe of docs/ci.md and docs/fleet.md: the steps are taken from the files themselves, and run on a project
that is as it should be, and on one that lost a fusion.

usage: run.py ATTN_OPT SOURCE_FOLDER
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import yaml

from fleet import FLEET
from github import GITHUB
from project import Project, environment_with, expect, project

ATTN_OPT, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
PYTHON_BIN = pathlib.Path(sys.executable).parent


def blocks(document, language):
    """Texts of the code blocks of a page, by their first line."""
    text = (SOURCE / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def block_named(document, language, name):
    (found,) = [block for block in blocks(document, language) if block.startswith(f"# {name}\n")]
    return found


def gitlab():
    job_file = yaml.safe_load((SOURCE / "ci/gitlab.yml").read_text())
    user_file = yaml.safe_load(block_named("docs/ci.md", "yaml", ".gitlab-ci.yml"))
    expect(user_file["include"][0] == {"project": "GROUP/attn-opt", "file": "ci/gitlab.yml"}, "a file that GitLab reads of another project")
    variables = {**job_file["variables"], **user_file["variables"]}
    unknown = set(user_file["variables"]) - set(job_file["variables"])
    expect(not unknown, f"docs/ci.md sets variables that nothing reads: {unknown}")
    job = job_file["attn-opt"]
    for lost, status in ((False, 0), (True, 1)):
        with project(ATTN_OPT, SOURCE) as user:
            if lost:
                user.lose_a_fusion()
            made = user.bash("\n".join(job["script"]), **variables)
            expect(made.returncode == status, made.stdout)
            for artifact in [job["artifacts"]["reports"]["junit"], *job["artifacts"]["paths"]]:
                expect((user.folder / artifact).is_file(), artifact)
            suites = xml.etree.ElementTree.parse(user.folder / "attn-opt.xml").getroot()
            expect(bool(suites.findall(".//failure")) == lost, "the JUnit report says so")


def jenkins():
    text = (SOURCE / "ci/Jenkinsfile").read_text()
    expect(text.count("{") == text.count("}"), "braces")
    stages = dict(re.findall(r"stage\('(\w+)'\).*?sh '''(.*?)'''", text, flags=re.S))
    expect(list(stages) == ["Cases", "Models"], stages)
    results = re.search(r"testResults: '([^']*)'", text)[1].split(", ") + re.findall(r"pattern: '([^']*)'", text)
    with project(ATTN_OPT, SOURCE) as user:
        for script in stages.values():
            made = user.bash(script)
            expect(made.returncode == 0, made.stdout)
        for result in results:
            expect((user.folder / result).is_file(), result)
        user.break_a_case()
        user.lose_a_fusion()
        for script in stages.values():
            expect(user.bash(script).returncode == 1, script)


def anywhere_else():
    (script,) = blocks("docs/ci.md", "sh")
    with project(ATTN_OPT, SOURCE) as user:
        expect(user.bash(script).returncode == 0, script)
        user.lose_a_fusion()
        expect(user.bash(script).returncode == 1, script)


def pre_commit():
    """The real pre-commit, the hooks taken from a repository with this project's manifest."""
    with tempfile.TemporaryDirectory() as folder:
        hooks = pathlib.Path(folder) / "attn-opt"
        hooks.mkdir()
        shutil.copy(SOURCE / ".pre-commit-hooks.yaml", hooks)
        user = Project(ATTN_OPT, SOURCE, folder)
        user.environment = {"PRE_COMMIT_HOME": folder + "/cache", "PATH": f"{PYTHON_BIN}:{environment_with(ATTN_OPT)['PATH']}"}
        identity = "git -c user.name=user -c user.email=user@localhost"
        start = f"git init -q -b main . && git add -A && {identity} commit -q -m begin"
        made = user.bash(f"(cd ../attn-opt && {start}) && {start} && git -C ../attn-opt rev-parse HEAD")
        expect(made.returncode == 0, made.stdout)
        config = block_named("docs/ci.md", "yaml", ".pre-commit-config.yaml").replace("rev: HEAD", f"rev: {made.stdout.strip()}")
        (user.folder / ".pre-commit-config.yaml").write_text(config)
        run = "git add -A && pre-commit run --all-files"
        made = user.bash(run)
        expect(made.returncode == 0, made.stdout)
        expect(made.stdout.count("Passed") == 2, made.stdout)
        user.lose_a_fusion()
        user.break_a_case()
        made = user.bash(run)
        expect(made.returncode == 1 and made.stdout.count("Failed") == 2, made.stdout)
        expect("is no longer fused" in made.stdout, made.stdout)
        made = user.bash("git rm -q --cached attn-opt.toml && rm attn-opt.toml && pre-commit try-repo ../attn-opt attn-opt-check --all-files")
        expect(made.returncode == 0, "nothing can be fused any more: " + made.stdout)
        made = user.bash("pre-commit validate-manifest ../attn-opt/.pre-commit-hooks.yaml")
        expect(made.returncode == 0, made.stdout)


def schemas():
    """What the systems themselves say of the form of their files."""
    check = PYTHON_BIN / "check-jsonschema"
    with tempfile.TemporaryDirectory() as folder:
        workflow = pathlib.Path(folder) / "attention.yml"
        workflow.write_text(block_named("docs/ci.md", "yaml", ".github/workflows/attention.yml"))
        user_file = pathlib.Path(folder) / ".gitlab-ci.yml"
        user_file.write_text(block_named("docs/ci.md", "yaml", ".gitlab-ci.yml"))
        own = [("github-workflows", file) for file in sorted((SOURCE / ".github/workflows").glob("*.yml"))]
        for schema, file in (("github-actions", SOURCE / "action.yml"), ("github-workflows", workflow), *own,
                             ("gitlab-ci", SOURCE / "ci/gitlab.yml"), ("gitlab-ci", user_file)):
            made = subprocess.run([check, "--builtin-schema", f"vendor.{schema}", file], capture_output=True, text=True, check=False)
            expect(made.returncode == 0, made.stdout + made.stderr)


def main():
    for recipe in (*GITHUB, gitlab, jenkins, anywhere_else, pre_commit, schemas, *FLEET):
        print(f"== {recipe.__name__}", flush=True)
        said = recipe(ATTN_OPT, SOURCE, blocks) if recipe in (*GITHUB, *FLEET) else recipe()
        print(said or "passed", flush=True)


main()
