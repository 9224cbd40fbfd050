"""What attn-opt does on a terminal, and what its completions and manual page do in the programs that read them.

usage: terminal_test.py ATTN_OPT SOURCE_FOLDER
"""

import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ATTN_OPT, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
MODEL = SOURCE / "testdata/models/sdpa-boolmask-ts14s-f16.onnx"
RED, GREEN = "\033[31m", "\033[32m"


def run(*arguments, **options):
    return subprocess.run([ATTN_OPT, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def on_terminal(*arguments, **environment):
    """Status and text of a run whose standard streams are a terminal."""
    command = [str(ATTN_OPT), *map(str, arguments)]
    process, master = pty.fork()
    if process == 0:
        kept = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        os.execve(command[0], command, {**kept, "TERM": "xterm", **environment})
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), text.decode()


class Colour(unittest.TestCase):
    def test_on_a_terminal_alone(self):
        status, text = on_terminal(MODEL, "-v")
        self.assertEqual(status, 0)
        self.assertIn(GREEN + "fused", text)
        self.assertNotIn("\033", run(MODEL, "-v").stdout)

    def test_no_color_and_dumb_terminals_have_none(self):
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn(GREEN, on_terminal(MODEL, "-v", **environment)[1])
        self.assertIn(GREEN, on_terminal(MODEL, "-v", NO_COLOR="")[1], "an empty NO_COLOR does not count")

    def test_the_option_counts_most(self):
        self.assertNotIn(GREEN, on_terminal(MODEL, "-v", "--color", "never")[1])
        self.assertIn(GREEN, run(MODEL, "-v", "--color", "always", env={**os.environ, "NO_COLOR": "1"}).stdout)
        self.assertIn(RED + "attn-opt:", run("missing.onnx", "--color=always").stderr)
        self.assertNotIn("\033", run("missing.onnx").stderr)


class Progress(unittest.TestCase):
    def test_a_bar_for_each_step_on_a_terminal(self):
        model = SOURCE / "testdata/models/opt-t5-decoder_model_merged.onnx"
        text = on_terminal(model, "--progress", "always", "--verify", "model")[1]
        self.assertRegex(text, r"\rattn-opt: (reading|matching|verifying) +\[[#.]{30}\]")
        self.assertIn("\r\033[K", text)
        self.assertLess(text.rindex("\033[K"), text.index("before     after"), "gone before the report")

    def test_quiet_elsewhere(self):
        self.assertEqual(run(MODEL).stderr, "")
        steps = [line.split()[1] for line in run(MODEL, "-o", os.devnull, "--progress", "always").stderr.splitlines()]
        self.assertEqual(list(dict.fromkeys(steps)), ["reading", "matching", "verifying", "writing"])


class Completions(unittest.TestCase):
    def test_bash(self):
        def complete(*words):
            script = run("completion", "bash").stdout + (
                'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attn_opt 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
            )
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "model.onnx").touch()
                made = subprocess.run(["bash", "-c", script, "bash", *words], cwd=folder, capture_output=True, text=True, check=True)
            self.assertEqual(made.stderr, "")
            return made.stdout.split()

        self.assertEqual(complete("attn-opt", "exp"), ["explain"])
        self.assertEqual(complete("attn-opt", "mod"), ["model.onnx"])
        self.assertEqual(complete("attn-opt", "--require"), ["--require-fused"])
        self.assertEqual(complete("attn-opt", "m.onnx", "--target", "o"), ["ort", "openvino", "ort-contrib"])
        self.assertEqual(complete("attn-opt", "m.onnx", "--form", "=", "3"), ["3d"])
        self.assertEqual(complete("attn-opt", "m.onnx", "--only", "soft"), ["softmax_attention"])
        self.assertEqual(complete("attn-opt", "batch", "--job"), ["--jobs"])
        self.assertEqual(complete("attn-opt", "run", "--job"), [])
        self.assertEqual(complete("attn-opt", "completion", "z"), ["zsh"])
        self.assertEqual(complete("attn-opt", "batch", "--report", "mo"), ["model.onnx"])

    def shell(self, name):
        if shutil.which(name) is None:
            self.skipTest(f"there is no {name}")
        with tempfile.NamedTemporaryFile("w", suffix=name) as file:
            file.write(run("completion", name).stdout)
            file.flush()
            made = subprocess.run([name, "-n", file.name], capture_output=True, text=True, check=False)
            self.assertEqual((made.returncode, made.stderr), (0, ""))

    def test_zsh(self):
        self.shell("zsh")
        script = "autoload -U compinit; compinit -u -D; " + 'eval "$(%s completion zsh)"; print $_comps[attn-opt]' % ATTN_OPT
        made = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(made.stdout.strip(), "_attn_opt", made.stderr)

    def test_fish(self):
        self.shell("fish")
        script = run("completion", "fish").stdout
        for line, expected in (("attn-opt exp", "explain"), ("attn-opt m.onnx --form 3", "3d"), ("attn-opt batch --job", "--jobs")):
            made = subprocess.run(["fish", "-c", f"{script}\ncomplete -C '{line}'"], capture_output=True, text=True, check=False)
            self.assertEqual([word.split("\t")[0] for word in made.stdout.splitlines()], [expected], made.stderr)

    def test_every_option_is_in_all_three(self):
        texts = [run("completion", shell).stdout for shell in ("bash", "zsh", "fish")]
        for option in ("--baseline", "--process-memory", "--case-out", "--expected", "--seeds", "--update-golden", "--config"):
            self.assertIn(option, texts[0])
            self.assertIn(option, texts[1])
            self.assertIn("-l " + option[2:], texts[2])


class Texts(unittest.TestCase):
    def test_packages_have_what_they_name(self):
        ids = re.findall(r"^## ([a-z-]+\.[a-z-]+)$", (SOURCE / "docs/misses.md").read_text(), re.M)
        self.assertGreater(len(ids), 100)
        for text in (run("man").stdout, *(run("explain", "--id", id).stdout for id in ids)):
            self.assertNotRegex(text, r"docs/|[.]md\)")

    def test_help_has_no_doubled_blank_lines(self):
        for command in ((), ("explain",), ("batch",), ("run",), ("test",)):
            self.assertNotIn("\n\n\n", run(*command, "--help").stdout)


class ManualPage(unittest.TestCase):
    def check(self, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f"there is no {command[0]}")
        made = subprocess.run(command, input=run("man").stdout, capture_output=True, text=True, check=False)
        self.assertEqual(made.stderr, "")
        return made.stdout

    def test_groff_has_no_warnings(self):
        text = self.check("groff", "-man", "-Tascii", "-P-cbou", "-ww")
        for words in ("EXIT STATUS", "--update-baseline", "attn-opt batch", "NO_COLOR", "attn-opt.toml"):
            self.assertIn(words, text)

    def test_mandoc_has_no_warnings(self):
        warnings = self.check("mandoc", "-T", "lint", "-W", "warning").splitlines()
        self.assertEqual([line for line in warnings if line and "missing date" not in line], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
