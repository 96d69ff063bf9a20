"""Commands in documents and on pages exist: `petstore …` in the program's tree, `make …` in the Makefile."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from petstore.cli.main import petstore
from tests.docs.documents import ROOT, documents, fences, prose, text_of
from tests.support.cases import every_case

_TEMPLATES = sorted((ROOT / "src" / "petstore" / "site" / "templates").glob("*.html"))
_WITH_COMMANDS = [path for path in (*documents(), *_TEMPLATES) if "petstore " in text_of(path)]
# A command in code: after the beginning of a line or of backquotes, a prompt, `$(`, a path or settings.
_COMMAND = re.compile(r"(?:^|[`>(]|\$ |[\w./-]*/|[A-Z_]+=\S+ )petstore ([a-z-][^`\n<>|;&)#]*)", re.M)


def commands_in(path: Path) -> list[str]:
    """What stands after `petstore` in code: fenced, in backquotes, or in an HTML element."""
    text = text_of(path)
    if path.suffix == ".html":
        return [
            found[1]
            for code in re.findall(r"<code>(.*?)</code>", text, re.S)
            for found in _COMMAND.finditer(code)
        ]
    code = [content for language, content in fences(text) if language in ("sh", "console", "")]
    code += re.findall(r"`([^`]+)`", re.sub(r"\s+", " ", prose(text)))
    return [found[1] for piece in code for found in _COMMAND.finditer(piece)]


def fault(line: str) -> str | None:
    """What is wrong with a command; None when the program has it, with all its options."""
    words = line.partition(" -- ")[0].split()
    command: click.Command = petstore
    context = click.Context(petstore, **petstore.context_settings)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        if command.get_command(context, name) is None:
            return f"petstore {line!r}: there is no command {name!r}"
        found = command.resolve_command(context, [name])[1]
        assert found is not None
        command, context = found, click.Context(found, context)
    known = {option for parameter in command.get_params(context) for option in parameter.opts}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"petstore {line!r}: there is no option {unknown[0]!r}" if unknown else None


@every_case("document", _WITH_COMMANDS)
def test_commands_of_the_program_exist(document: Path) -> None:
    """A reader who types a command from a document is not told that there is none."""
    assert [told for line in commands_in(document) if (told := fault(line))] == []


def makefile_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", text_of(ROOT / "Makefile"), re.M))


@every_case("document", documents())
def test_make_targets_exist(document: Path) -> None:
    """Each `make …` of a document is a target of the Makefile."""
    text = text_of(document)
    code = [content for language, content in fences(text) if language in ("sh", "console")]
    code += re.findall(r"`([^`]+)`", prose(text))
    named = {found for piece in code for found in re.findall(r"^make ([a-z-]+)", piece, re.M)}
    assert named - makefile_targets() == set()


def modules_run() -> dict[str, set[str]]:
    """What stands after `python -m` in code: the project's programs, and the words before their options."""
    code = [
        " ".join(piece.split()) for path in documents() for piece in re.findall(r"`([^`]+)`", text_of(path))
    ]
    found: dict[str, set[str]] = {}
    for name, words in re.findall(
        r"python -m ((?:tests|tools|verification)[\w.]*)((?: [a-z]+)*)", "\n".join(code)
    ):
        found.setdefault(name, set()).update(words.split())
    return found


# In one process: most of the time goes into what all of them import.
_HELP = """
import io, json, runpy, sys
from contextlib import redirect_stdout

shown = {}
for name in sys.argv[1:]:
    sys.argv = [name, "--help"]
    with redirect_stdout(io.StringIO()) as said:
        try:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            assert not ended.code, name
    shown[name] = said.getvalue()
print(json.dumps(shown))
"""


@pytest.mark.e2e
def test_programs_that_documents_run_exist() -> None:
    """They know the words that they are given."""
    told = modules_run()
    assert len(told) > 5
    command = [sys.executable, "-c", _HELP, *told]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    shown = json.loads(ran.stdout)
    unknown = {
        name: [word for word in words if not re.search(rf"\b{word}\b", shown[name])]
        for name, words in told.items()
    }
    assert {name: words for name, words in unknown.items() if words} == {}
