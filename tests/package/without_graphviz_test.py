"""Configures attn-opt without Graphviz, and compiles what draws.

    without_graphviz_test.py CMAKE SOURCE WORK [CMAKE_ARGUMENT...]
"""
import json
import pathlib
import shlex
import shutil
import subprocess
import sys

cmake, source, work, *arguments = sys.argv[1:]
work = pathlib.Path(work).resolve()


def run(command, **options):
    print("$", *command, flush=True)
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"status {done.returncode}")
    return done.stdout


def reads(file, name):
    """Is NAME a part of FILE, which may be a batch of files?"""
    return file.name == name or f"/{name}\"" in file.read_text()


shutil.rmtree(work, ignore_errors=True)
said = run([cmake, "-G", "Ninja", "-S", source, "-B", work, "-DCMAKE_BUILD_TYPE=Release", "-DATTN_OPT_BUILD_TESTS=OFF",
            "-DATTN_OPT_GRAPHVIZ=OFF", *arguments])
if "Reports will not draw: Graphviz" not in said:
    sys.exit("failed: the build does not say that it will not draw")
if "gvplugin" in (work / "build.ninja").read_text():
    sys.exit("failed: Graphviz is linked")
commands = json.loads((work / "compile_commands.json").read_text())
(command,) = [one for one in commands if reads(pathlib.Path(one["file"]), "placement.cpp")]
if "ATTN_OPT_HAS_GRAPHVIZ" in command["command"]:
    sys.exit("failed: its headers are read")
run([*shlex.split(command["command"]), "-fsyntax-only"], cwd=command["directory"])
