"""Hooks of MkDocs: README.md is the first page, and what pages refer to outside docs/ is in the site, below repository/."""

import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(\]\()([^)#:\s]+)([^):\s]*\))")
CODE = re.compile(r"`[^`\n]*`")


def address_of(path):
    """Where the site has PATH, a file or folder of the repository. Markdown outside docs/ is shown as text."""
    if path == ROOT / "README.md":
        return "index.md"
    address = str(path.relative_to(DOCS)) if path.is_relative_to(DOCS) else f"repository/{path.relative_to(ROOT)}"
    if path.is_dir():
        return f"{address}/index.md"
    return f"{address}.txt" if path.suffix == ".md" and not path.is_relative_to(DOCS) else address


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def listing(folder):
    """A page for a folder: its files."""
    base = str(pathlib.PurePosixPath(address_of(folder)).parent)
    rows = [f"- [{path.relative_to(folder)}]({address_of(path).removeprefix(base + '/')})" for path in files_of(folder)]
    return f"# {folder.relative_to(ROOT)}\n\n" + "\n".join(rows) + "\n"


def linked(page):
    """What PAGE links to of the repository."""
    for match in LINK.finditer(page.read_text()):
        path = (page.parent / match[2]).resolve()
        if path.exists() and path.is_relative_to(ROOT):
            yield path


def on_files(files, config):
    """Adds README.md and what pages link to outside docs/."""
    contents = {"index.md": (ROOT / "README.md").read_bytes()}
    for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))):
        for path in linked(page):
            for file in files_of(path) if path.is_dir() else [path]:
                contents.setdefault(address_of(file), file.read_bytes())
            if path.is_dir():
                contents[address_of(path)] = listing(path)
    for address, content in contents.items():
        if address not in files.src_uris:
            files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown, page, **_):
    """Links lead to where the site has their targets. Code in a table needs no backslash in front of a pipe here."""
    uri = page.file.src_uri
    if page.file.generated_by and uri != "index.md":
        return markdown
    folder = ROOT if uri == "index.md" else DOCS

    def in_site(match):
        path = (folder / match[2]).resolve()
        return match[1] + address_of(path) + match[3] if path.exists() and path.is_relative_to(ROOT) else match[0]

    lines = []
    for line in markdown.split("\n"):
        if line.startswith("|"):
            line = CODE.sub(lambda match: match[0].replace(r"\|", "|"), line)
        lines.append(line if line.startswith("    ") else LINK.sub(in_site, line))
    return "\n".join(lines)
