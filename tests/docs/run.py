"""Runs what README.md and docs/ tell a reader to run, and holds what they show against what is printed.

usage: run.py ATTN_OPT SOURCE_FOLDER [--update]

A session (```console) runs in a folder with the bundled models, in the page's order, together with its blocks of Python; rules
(# RULE) go to my_rules/ before. Numbers in tables of models are compared too. Measured times and rounding errors are not compared; a line "..." stands for any lines.
--update writes into the pages what is printed now. Any other command that a page has in a block is run for its status, or
is listed in ELSEWHERE; one in a sentence is run as far as it goes.
"""

import contextlib
import hashlib
import importlib.util
import io
import json
import linecache
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import onnx

from elsewhere import ELSEWHERE, PLACEHOLDERS
from pages import blocks, in_session, pages, plain, spoken

ATTN_OPT, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
UPDATE = "--update" in sys.argv[3:]
EXAMPLE = SOURCE / "examples/regression-suite"
MEASURED = ((r"largest difference \S+ \(relative [^)]*\)( at \([\d, ]*\))?", "largest difference N"),
            (r"\bin \d+(\.\d+)?(e-\d+)? s\b", "in N s"), (r"\b\d+(\.\d+)?e-\d+\b", "N"), (r"\b\d+(\.\d+)? ulp\b", "N ulp"),
            (r"\balgebra \d\S*", "algebra N,"), (r"verified \(\S+,", "verified (N,"))


@contextlib.contextmanager
def workspace(rules=None):
    """A folder with what pages take for granted: models by their names, `models`, `cases`; `my_rules` with RULES."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "testdata").symlink_to(SOURCE / "testdata")
        for model in [*SOURCE.glob("testdata/models/*.onnx"), *SOURCE.glob("testdata/examples/*.onnx*")]:
            shutil.copy(model, folder)
        shutil.copy(folder / "bert-ts14s.onnx", folder / "model.onnx")
        shutil.copytree(EXAMPLE / "models", folder / "models")
        (folder / "list.txt").write_text("models\n")
        for cases in ("cases", "my_cases"):
            (folder / cases).mkdir()
            shutil.copy(EXAMPLE / "cases/llama_with_cache.onnxtxt", folder / cases)
        if rules:
            (folder / "my_rules").mkdir()
            shutil.copy(EXAMPLE / f"rules/{rules}", folder / "my_rules")
        yield folder


def environment(folder):
    return {**os.environ, "PATH": f"{ATTN_OPT.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder),
            "NO_COLOR": "1", "COLUMNS": "100", "TMPDIR": str(folder)}


def run(command, folder):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment(folder), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)


def compared(text):
    """TEXT without what differs from run to run and from processor to processor."""
    for pattern, name in MEASURED:
        text = re.sub(pattern, name, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def agrees(shown, printed):
    pattern = "\n".join(r"(?:.*\n?)*" if line == "..." else re.escape(line) for line in compared(shown).splitlines())
    return re.fullmatch(pattern, compared(printed)) is not None


def run_session(page, block, folder, faults):
    """The block as it is when each command shows what it prints now."""
    now = ""
    for command in in_session(block):
        made = run(command.text, folder)
        if not command.printed and made.returncode != 0:
            faults.append(f"{page}: `{command.text}` ends with {made.returncode}:\n{made.stdout}")
        shown = command.printed
        if not agrees(shown, made.stdout):
            faults.append(f"{page}: `{command.text}` prints\n{made.stdout}\nand not\n{shown}")
            shown = made.stdout.strip("\n")
        now += f"$ {command.text}\n" + (shown + "\n" if shown else "") + "\n"
    return now.rstrip("\n") + "\n"


def is_missing(name, block):
    return f"import {name}" in block and importlib.util.find_spec(name) is None


def check_export(page, block, folder, faults):
    """Without PyTorch the model that an export gave is there already: it says of which text."""
    (output,) = re.findall(r'"([\w-]+\.onnx)"', block)
    said = {entry.key: entry.value for entry in onnx.load(folder / output).metadata_props}
    if said.get("made_of") != hashlib.sha256(block.encode()).hexdigest():
        faults.append(f"{page}: {output} was not exported by the block that the page has; testdata/examples/make.py makes it anew")


def run_python(page, block, folder, names, faults):
    """A block of Python in the page's folder; the package of attn-opt is there where it is built."""
    if is_missing("torch", block):
        check_export(page, block, folder, faults)
    if is_missing("torch", block) or is_missing("attn_opt", block):
        return
    # Stack traces in what is exported have the lines of a file, which a reader calls so.
    linecache.cache["export.py"] = (len(block), None, block.splitlines(True), "export.py")
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, "export.py", "exec"), names)  # pylint: disable=exec-used
    except Exception as error:  # pylint: disable=broad-except
        faults.append(f"{page}: {error!r} in\n{block}")
    os.chdir(before)


def run_page(page, text, faults):
    """Runs sessions and Python of a page in order. Returns the page with what is printed now."""
    with workspace() as folder:
        names, made, done = {}, "", 0
        for language, block, begin, end in blocks(text):
            if rule := re.match(r"# RULE +(\S+)", block):
                (folder / "my_rules").mkdir(exist_ok=True)
                (folder / f"my_rules/{rule[1]}.rule").write_text(block)
            if language == "python":
                run_python(page, block, folder, names, faults)
            if language == "console":
                made += text[done:begin] + run_session(page, block, folder, faults)
                done = end
    return made + text[done:]


def check_tables(page, text, faults):
    """Rows that name a model end with how many sites are fused, and the nodes before and after."""
    with workspace() as folder:
        for model, *said in re.findall(r"^\| [^|]*`([\w-]+\.onnx)` \|(?:[^|\n]*\|)? (\d+ of \d+) \| (\d+) \| (\d+) \|$", text, re.M):
            report = json.loads(run(f"attn-opt {model} -q --report json:-", folder).stdout)
            summary, nodes = report["summary"], report["nodes"]
            now = [f"{summary['fused']} of {summary['sites']}", str(nodes["before"]), str(nodes["after"])]
            if said != now:
                faults.append(f"{page}: of {model} the table says {said}, now {now}")


def with_values(command):
    """COMMAND with a value for each placeholder, and what is optional given."""
    text = re.sub(r"\[options\]|\[--update-golden\]", "", command)
    text = re.sub(r"\[(-[^\]]*)\]", r"\1", text)
    return " ".join(PLACEHOLDERS.get(word, word) for word in text.split())


def run_plain(page, text, used, faults):
    """Commands without output: their status is 0, or another test runs them."""
    with workspace(rules="odds.rule") as folder:
        for command in plain(text):
            if command.text in ELSEWHERE:
                used.add(command.text)
            elif command.text.startswith("attn-opt"):
                made = run(with_values(command.text), folder)
                if made.returncode != 0:
                    faults.append(f"{page}: `{with_values(command.text)}` ends with {made.returncode}:\n{made.stdout}")
            else:
                faults.append(f"{page}: no test runs `{command.text}`; tests/docs/elsewhere.py names one")


def run_spoken(page, text, faults):
    """Commands in sentences: those of attn-opt are known with their options, and run where they have all that they need; others name
    files that there are."""
    with workspace(rules="odds.rule") as folder:
        for command in spoken(text):
            if command.startswith("attn-opt"):
                made = run(with_values(command), folder)
                if made.returncode != 0 and " is required" not in made.stdout:
                    faults.append(f"{page}: `{with_values(command)}` ends with {made.returncode}:\n{made.stdout}")
            else:
                files = [word for word in command.split() if "/" in word and not word.startswith("build/")]
                faults += [f"{page}: `{command}` names {file}, which there is not" for file in files if not (SOURCE / file).exists()]


def main():
    faults, used = [], set()
    for page, text in pages(SOURCE).items():
        if "```console\n" in text:
            now = run_page(page, text, faults)
            if UPDATE:
                (SOURCE / page).write_text(now)
        check_tables(page, text, faults)
        run_plain(page, text, used, faults)
        run_spoken(page, text, faults)
    faults += [f"elsewhere.py: no page has `{command}`" for command in ELSEWHERE if command not in used]
    print("\n\n".join(faults))
    sys.exit(1 if faults and not UPDATE else 0)


main()
