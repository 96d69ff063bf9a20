"""Samples in documents: fenced blocks in bash, Python and JavaScript, and what they are said to print.

Those of one language go on from each other and run in one process. A block of `text` or `json` that follows
a sample at once says what the sample prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.samples import run_bash, run_node, run_python

# As the service shows it.
GUIDE = Path(__file__).parents[2] / "src" / "petstore" / "site" / "documents" / "guide.md"
_MARK = "@@ sample"
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<content>.*?)^```$", re.M | re.S)
# How each is run, and how it prints the mark. bash is first: it shows the identifiers of a new store.
_RUNNERS = {
    "sh": (run_bash, f"printf '\\n%s\\n' '{_MARK}'"),
    "python": (run_python, f'print("\\n{_MARK}")'),
    "js": (run_node, f'console.log("\\n{_MARK}");'),
}
LANGUAGES = tuple(_RUNNERS)
# What can't be run says so by its language.
SHOWN = ("json", "text")


@dataclass(frozen=True)
class Sample:
    """A fenced block. `printed` is what the document says that it prints, or None; `line` counts from 1."""

    language: str
    code: str
    line: int
    printed: list[str] | None = None


def samples(text: str) -> list[Sample]:
    """The samples of a document, in order."""
    found: list[Sample] = []
    end = -1
    for block in _BLOCK.finditer(text):
        language, content = block["language"], block["content"]
        if language in LANGUAGES:
            found.append(Sample(language, content, text.count("\n", 0, block.start()) + 1))
            end = block.end()
        elif language in SHOWN and end >= 0 and not text[end : block.start()].strip():
            sample = found.pop()
            found.append(Sample(sample.language, sample.code, sample.line, content.splitlines()))
            end = -1
    return found


def play(chosen: Sequence[Sample], folder: Path, environment: Mapping[str, str]) -> list[list[str]]:
    """Runs samples of one language in a process: the lines that each printed, empty ones left out.

    Fails unless all end well, and skips where the language's program is missing.
    """
    run, tell = _RUNNERS[chosen[0].language]
    source = "".join(f"{tell}\n{sample.code}\n" for sample in chosen)
    finished = run(source, environment, folder=folder)
    _, *printed = re.split(rf"^{_MARK}$", finished.output, flags=re.M)
    at = chosen[max(len(printed) - 1, 0)].line
    assert finished.code == 0, f"the sample of line {at} failed:\n{finished.errors}{finished.output[-2000:]}"
    return [[line for line in text.splitlines() if line.strip()] for text in printed]
