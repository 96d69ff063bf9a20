"""docs/quickstart.md, run from top to bottom as a new user would: bash, curl, the real server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.docs.sessions import Step, matches, steps
from tests.support.server import PROGRAM, Server, environment, free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DOCUMENT = Path(__file__).parents[2] / "docs" / "quickstart.md"
PORT_IN_DOCUMENT = "8080"
KEY_IN_DOCUMENT = "pets_live_YourOwnKeyStandsHere"


def _tools_or_skip() -> None:
    missing = [tool for tool in ("bash", "curl") if shutil.which(tool) is None]
    if missing:
        message = f"the quickstart needs {' and '.join(missing)}, which this machine does not have"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


def _terminal(folder: Path, port: int) -> dict[str, str]:
    """The environment of a terminal: the path and the directory as the document says, another port."""
    kept = environment({"port": str(port)})
    return kept | {
        "PATH": f"{PROGRAM.parent}{os.pathsep}{kept['PATH']}",
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder),
    }


def _lines(text: str) -> list[str]:
    return text.replace("\r", "").strip().splitlines()


def _run(session: list[Step], folder: Path, terminal: dict[str, str]) -> list[tuple[int, list[str]]]:
    """Every command in one bash, one after the other: exit code and the lines that it printed."""
    script = "".join(
        f"printf '@@begin\\n'\n{{ {step.command}\n}} 2>&1\nprintf '\\n@@end %d\\n' $?\n" for step in session
    )
    finished = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder,
        env=terminal,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    found = re.findall(r"@@begin\n(.*?)\n@@end (\d+)\n", finished.stdout, re.S)
    assert len(found) == len(session), finished.stdout + finished.stderr
    return [(int(code), _lines(text)) for text, code in found]


def test_a_session_is_as_the_document_says(tmp_path: Path) -> None:
    """Every command of the quickstart succeeds, and prints what the page shows."""
    _tools_or_skip()
    port = free_port()
    text = DOCUMENT.read_text(encoding="utf-8").replace(PORT_IN_DOCUMENT, str(port))
    start, *session = steps(text)
    assert start.command == "petstore serve", "the first command of the quickstart starts the service"
    terminal = _terminal(tmp_path, port)
    output = tmp_path / "first-terminal.txt"
    with output.open("wb") as first_terminal:
        process = subprocess.Popen(
            start.command.split(),
            cwd=tmp_path,
            env=terminal | {"PETSTORE_ACCESS_LOG": "off"},
            stdin=subprocess.DEVNULL,
            stdout=first_terminal,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, port, tmp_path / "petstore.db", output)
    try:
        server.wait_until_ready()
        printed = _lines(server.log)
        assert matches(start.expected, printed), "\n".join(printed)
        key = re.search(r"pets_live_[0-9A-Za-z]{38}", server.log)
        assert key is not None
        for step in session:
            step.command = step.command.replace(KEY_IN_DOCUMENT, key[0])
        for step, (code, lines) in zip(session, _run(session, tmp_path, terminal), strict=True):
            assert code == 0, f"{step.command}\nended with {code}:\n" + "\n".join(lines)
            assert matches(step.expected, lines), "\n".join(
                [f"$ {step.command}", "--- the document:", *step.expected, "--- printed:", *lines]
            )
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    finally:
        server.kill()
    assert (tmp_path / "petstore.db").exists()


def test_the_comparison_can_fail() -> None:
    """A line that is missing, too many or different is noticed; `...` stands for any number of lines."""
    assert matches(["a", "...", "b"], ["a", "b"])
    assert matches(["a", "...", "b"], ["a", "x", "y", "b"])
    assert matches(["retry-after: 57"], ["retry-after: 3"])
    assert not matches(["a", "...", "b"], ["a", "x"])
    assert not matches(["a"], ["a", "b"])
    assert not matches(["a", "b"], ["a"])
    assert not matches(["HTTP/1.1 200 OK"], ["HTTP/1.1 429 Too Many Requests"])
    assert not matches(["retry-after: 57"], ["retry-after: soon"])
