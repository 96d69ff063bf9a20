"""Forms that make a sentence hard."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tests.architecture.sources import ROOT, tracked

# Each hides who does what. Write subject, verb, object.
HARD = re.compile(
    r"\b(told|whoever|of before|that is none|so (many|long)|as far as|nobody (has|had) (asked|told)"
    r"|(?<!there )(is|are|was|were) no (?!longer)[a-z]+|(?<=# )of (?!any kind)[a-z]+|the present"
    r"|(bookmark|events|begins?|goe?s? on|page|those) behind|(?<=\. )(read|write|manage)(?=\.))\b(?! …)",
    re.IGNORECASE,
)


def sentences() -> Iterator[tuple[str, str]]:
    """Comments and docstrings of the program, and the pages: where each is, and its text on one line."""
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py" and name.startswith(("src/", "clients/")):
            text = path.read_text(encoding="utf-8")
            if not HARD.search(" ".join(text.split())):
                continue
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    yield f"{name}:{token.start[0]}", token.string
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield (
                        f"{name}:{getattr(node, 'lineno', 1)}",
                        " ".join((ast.get_docstring(node) or "").split()),
                    )
        elif path.suffix == ".md" and "decisions" not in path.parts and path.name != "CHANGELOG.md":
            yield name, " ".join(path.read_text(encoding="utf-8").split())


def test_sentences_say_who_does_what() -> None:
    """Subject, verb, object; a reader understands it at once."""
    found = {f"{place}: {hit[0]}" for place, text in sentences() for hit in HARD.finditer(text)}
    assert not found, "\n".join(sorted(found))
