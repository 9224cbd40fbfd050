"""README.md and the pages of docs/: their commands, and what is said to come of them."""

import dataclasses
import pathlib
import re

SESSION = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
INDENTED = re.compile(r"(?:^    .*\n(?:^\n(?=    ))?)+", re.M)
SHELL = re.compile(r"^```(?:sh|bash)\n(.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
PROGRAMS = re.compile(r"^(\w+=\S+ )*(\./|bench/|build/|examples/|scripts/|[A-Z]+ tests/|attn-opt( |$)|pip |python |cmake |ctest |docker |git |kubectl |sbatch |part=|"
                      r"mkdir |find |gh |rattler-build |time |for )")
SPOKEN = re.compile(r"`((?:attn-opt |attn-opt$|\./scripts/|scripts/|bench/|cmake |docker |ctest |rattler-build |pip |python )[^`]*)`")


@dataclasses.dataclass
class Command:
    """A line that a reader may run. `printed` is the text below it in a session, None elsewhere."""

    text: str
    printed: str | None = None


def without_remark(line):
    """LINE without what a page says of the command: words behind three blanks or a #."""
    return re.split(r"   +| +# ", line.strip())[0]


def in_session(block):
    """The commands of a session: lines that begin with $, a backslash goes on; below each what it prints."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        lines = part.split("\n")
        end = next(index for index, line in enumerate(lines) if not line.endswith("\\"))
        yield Command("\n".join(lines[: end + 1]), "\n".join(lines[end + 1 :]).strip("\n"))


def sessions(text):
    """Sessions of a page, in order."""
    return [command for block in SESSION.findall(text) for command in in_session(block)]


def plain(text):
    """Commands that stand in code blocks without what they print."""
    blocks = SHELL.findall(text) + INDENTED.findall(FENCE.sub("", text))
    lines = [line for block in blocks for line in block.splitlines()]
    return [Command(without_remark(line)) for line in lines if PROGRAMS.match(line.strip())]


def spoken(text):
    """Commands in sentences and tables."""
    return [" ".join(found.split()) for found in SPOKEN.findall(FENCE.sub("", text))]


def pages(source):
    """Texts by path: README.md, CONTRIBUTING.md and docs/*.md."""
    source = pathlib.Path(source)
    paths = [source / "README.md", source / "CONTRIBUTING.md", *sorted((source / "docs").glob("*.md"))]
    return {str(path.relative_to(source)): path.read_text() for path in paths}


def blocks(text):
    """Fenced blocks of a page in order: language, contents, where the contents begin and end."""
    return [(found[1], found[2], found.start(2), found.end(2)) for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)]
