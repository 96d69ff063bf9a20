"""The installed program as a real process: its streams and its exit codes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from petstore.core.clock import SystemClock
from tests.cli.conftest import Cli
from tests.support.backends import make_file
from tests.support.clock import ManualClock
from tests.support.waiting import wait_for
from tools.servers.petstore import PROGRAM, environment

pytestmark = pytest.mark.e2e

_SECONDS = 30


class Program:
    """The program, on one database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = {"database_url": f"sqlite:///{folder}/petstore.db"}

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.settings) | {"TERM": "xterm-256color", "NO_COLOR": ""}

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """One run without input, its streams apart."""
        return self.start(arguments, env=self.environment | variables)

    def start(self, arguments: Sequence[str], **streams: Any) -> subprocess.CompletedProcess[str]:
        """One run with other streams."""
        how: dict[str, Any] = {"cwd": self.folder, "env": self.environment, "text": True, "timeout": _SECONDS}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.run([PROGRAM, *arguments], check=False, **how | pipes | streams)

    def ok(self, *arguments: str) -> str:
        """What a command tells that is given in this process, beside the run that a test is about."""
        return Cli(self.folder, ManualClock(SystemClock().now_ms())).ok(*arguments)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program in a directory with an empty database."""
    make_file(tmp_path / "petstore.db")
    return Program(tmp_path)


def at_a_terminal(program: Program, prompt: bytes, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """A command on a terminal, at its prompt: the process and our side of the terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        env=program.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while prompt not in shown:
        shown += os.read(ours, 1_024)
    return process, ours


def read_all(terminal: int) -> str:
    """Everything until the other side is closed (which Linux reports as an error)."""
    parts = []
    try:
        while part := os.read(terminal, 65_536):
            parts.append(part)
    except OSError:
        pass
    finally:
        os.close(terminal)
    return b"".join(parts).decode()


class TestStreams:
    @pytest.mark.slow
    def test_closed_pipe_ends_quietly(self, program: Program) -> None:
        """`petstore openapi | head -1` and the like: no traceback, nothing on standard error."""
        for arguments in (["openapi"], ["accounts", "list", "--json"], ["--help"]):
            reading, writing = os.pipe()
            os.close(reading)
            try:
                assert program.start(arguments, stdout=writing).stderr == ""
            finally:
                os.close(writing)

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
    def test_key_that_could_not_be_printed_is_named(self, program: Program) -> None:
        """A new key that a full disk left unprinted is named, and the operator is asked to revoke it."""
        program.ok("accounts", "add", "shop", "--plan", "free")
        with Path("/dev/full").open("w") as full:
            words = ["keys", "issue", "shop"]
            issued = [program.start([*words, *json], stdout=full) for json in ([], ["--json"])]
            other = program.start(["accounts", "add", "zoo", "--plan", "free"], stdout=full)
        for key_id, done in enumerate(issued, 1):
            assert done.returncode == 1
            message = f"Key {key_id} was issued but could not be printed (No space left on device)"
            assert message in done.stderr
            assert f"petstore keys revoke {key_id}" in done.stderr.splitlines()[-1]
        assert (other.returncode, other.stderr) == (
            1,
            "petstore: The output can't be written: No space left on device. A change that was made stays.\n",
        )
        assert "zoo" in program.ok("accounts", "list")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
    def test_remarks_into_a_full_log_are_left_out(self, program: Program) -> None:
        """The work, its result and its exit code are as they were: a new key reaches who asked for it."""
        program.ok("accounts", "add", "shop", "--plan", "free")
        with Path("/dev/full").open("w") as full:
            issued = program.start(["keys", "issue", "shop"], stderr=full)
            wrong = program.start(["keys", "issue", "shop", "--nonsense"], stderr=full)
        assert (issued.returncode, wrong.returncode) == (0, 2)
        assert issued.stdout.startswith("pets_live_")

    def test_each_closed_stream_does_what_it_must(self, program: Program) -> None:
        """`>&-` is a failure, which names a key that nobody has seen; `<&-` is an empty input; `2>&-` drops
        remarks."""

        def run(line: str) -> subprocess.CompletedProcess[str]:
            shell = ["sh", "-c", f'"$0" {line}', str(PROGRAM)]
            how: dict[str, Any] = {"env": program.environment, "capture_output": True, "text": True}
            return subprocess.run(shell, timeout=_SECONDS, check=False, **how)

        program.ok("accounts", "add", "shop", "--plan", "free")
        done = run("keys issue shop >&-")
        assert done.returncode == 1, done.stderr
        assert "petstore keys revoke 1" in done.stderr
        done = run("accounts list >&-")
        assert (done.returncode, done.stderr) == (
            1,
            "petstore: The output can't be written: Bad file descriptor. A change that was made stays.\n",
        )
        done = run("keys revoke 1 <&-")
        assert done.returncode == 0, done.stdout
        assert "revoked" in done.stdout
        done = run("pets import - --format csv <&-")
        assert done.returncode == 1, done.stderr
        assert "The list is empty" in done.stderr
        done = run("keys issue shop 2>&-")
        assert done.returncode == 0, done.stdout
        assert done.stdout.startswith("pets_live_")

    def test_terminal_without_unicode(self, program: Program) -> None:
        """What a terminal of another encoding can't show appears as an escape."""
        program.ok("pets", "add", "名前", "--category", "1")
        done = program.run("pets", "list", PYTHONIOENCODING="latin-1")
        assert done.returncode == 0, done.stderr
        assert "\\u540d\\u524d" in done.stdout

    def test_a_list_from_standard_input_is_not_overwritten_by_its_rejects(self, program: Program) -> None:
        """`pets import - --skip-bad stock.csv < stock.csv`: refused as the named file is, and it stays."""
        path, text = program.folder / "stock.csv", "name,categoryId\nRex,1\nMia,x\n"
        path.write_text(text)
        command = ["pets", "import", "-", "--format", "csv", "--skip-bad", str(path)]
        with path.open() as stdin:
            done = program.start(command, stdin=stdin)
        assert (done.returncode, path.read_text()) == (2, text)
        assert "need a file of their own" in done.stderr

    def test_rejects_may_go_to_a_device(self, program: Program) -> None:
        """/dev/null drops them, and a pipe gets them: neither can be sought or synced as a file is."""
        path = program.folder / "stock.csv"
        path.write_text("sku,name,categoryId\na,Rex,1\nb,Mia,x\nc,Max,1\nc,Max,1\n")
        arguments = ("pets", "import", str(path), "--source-key", "sku", "--skip-bad")
        told = program.run(*arguments, "/dev/null").stdout
        assert told.startswith("1 added, 0 changed, 0 unchanged, 3 rejected.")
        lines = program.run(*arguments, "/dev/stdout").stdout.splitlines()
        assert lines[0] == "faults,sku,name,categoryId"
        assert [line.rsplit('",')[-1][-7:] for line in lines[1:4]] == ["b,Mia,x", "c,Max,1", "c,Max,1"]


class TestPrompt:
    def test_interrupt_at_the_start(self, program: Program) -> None:
        """Ctrl+C while the program is read: 130, no traceback."""
        (program.folder / "click.py").write_text("raise KeyboardInterrupt\n")
        path = os.pathsep.join(filter(None, (str(program.folder), os.environ.get("PYTHONPATH"))))
        line = [sys.executable, "-c", "import petstore.cli"]
        environment = program.environment | {"PYTHONPATH": path}
        done = subprocess.run(line, env=environment, capture_output=True, timeout=_SECONDS, check=False)
        assert (done.returncode, done.stderr) == (130, b"")

    def test_interrupt_at_the_prompt(self, program: Program) -> None:
        """Ctrl+C while `keys check` asks for a key: 130, no traceback."""
        process, ours = at_a_terminal(program, b"Key:", "keys", "check")
        state = Path(f"/proc/{process.pid}/stat")
        # A signal right before the read of the key interrupts nothing.
        wait_for(lambda: state.read_text().rpartition(")")[2].split()[0] == "S", "the read of the key")
        process.send_signal(signal.SIGINT)
        assert process.wait(_SECONDS) == 130
        assert "Traceback" not in read_all(ours)

    def test_prompt_does_not_show_the_key(self, program: Program) -> None:
        """The command asks for the key on a terminal, and what is typed stays hidden."""
        program.ok("accounts", "add", "shop", "--plan", "free")
        key = program.ok("keys", "issue", "shop").strip()
        process, ours = at_a_terminal(program, b"Key:", "keys", "check")
        os.write(ours, key.encode() + b"\n")
        assert process.wait(_SECONDS) == 0
        rest = read_all(ours)
        assert "active" in rest
        assert key not in rest


class TestFollow:
    def test_events_come_once_each_until_ctrl_c(self, program: Program) -> None:
        """Each as a whole line as soon as it is there; then 130, and the bookmark after the last one."""
        program.ok("pets", "add", "Rex", "--category", "1")
        with self.follower(program, "--limit", "1", "--json") as follower:
            assert follower.stdout is not None
            assert json.loads(follower.stdout.readline())["data"]["name"] == "Rex"
            for name in ("Mia", "Bo"):
                program.ok("pets", "add", name, "--category", "1")
                assert json.loads(follower.stdout.readline())["data"]["name"] == name
            follower.send_signal(signal.SIGINT)
            rest, remarks = follower.communicate(timeout=_SECONDS)
        assert (follower.returncode, rest) == (130, "")
        program.ok("pets", "add", "Li", "--category", "1")
        assert program.ok("events", "--after", remarks.split()[-1]).endswith(
            "name: Li, categoryId: 1, status: available\n"
        )

    def test_a_restore_ends_it(self, program: Program) -> None:
        """What followed then would not be what is there."""
        program.ok("pets", "add", "Rex", "--category", "1")
        with self.follower(program) as follower:
            assert follower.stdout is not None
            follower.stdout.readline()
            program.ok("db", "mark-restored")
            rest, remarks = follower.communicate(timeout=_SECONDS)
        assert (follower.returncode, rest) == (1, "")
        assert "restored from a copy. Leave out --after" in remarks

    def follower(self, program: Program, *options: str) -> subprocess.Popen[str]:
        command: list[str | Path] = [PROGRAM, "events", "--follow", *options]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=program.environment, **pipes)


@pytest.mark.slow
def test_a_revocation_shows_the_key_and_takes_no_for_an_answer(program: Program) -> None:
    """What ends access for good asks on a terminal, and only there. Anything but yes changes nothing and ends
    with 1; --yes does not ask; a script is not asked. What other commands ask is shown in process."""
    program.ok("accounts", "add", "shop", "--plan", "free")
    for label in ("till", "import"):
        program.ok("keys", "issue", "shop", "--label", label, "--access", "read")
    prompt = b"of account 'shop', label 'till', access read. Revoke it for good? [y/N]:"
    for answer, code, state in ((b"\n", 1, "active"), (b"y\n", 0, "revoked")):
        process, ours = at_a_terminal(program, prompt, "keys", "revoke", "1")
        os.write(ours, answer)
        assert process.wait(_SECONDS) == code
        assert ("Nothing was changed." in read_all(ours)) == (code == 1)
        assert json.loads(program.ok("keys", "show", "1", "--json"))["state"] == state
    process, ours = at_a_terminal(program, b"revoked", "keys", "revoke", "2", "--yes")
    assert process.wait(_SECONDS) == 0
    assert "[y/N]" not in read_all(ours)


def printed(code: str, **variables: str) -> str:
    """What a Python prints that carries this out."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=True,
    )
    return done.stdout


_OF_MAIL = {"email", "aiosmtplib", "structlog"}


@pytest.mark.parametrize(
    ("line", "heavy"),
    [
        ("--version", {"httptools", "starlette", "rich", "structlog", "msgspec", "apsw", "asyncio", "yaml"}),
        *((line, _OF_MAIL) for line in ("--help", "notifications test --help", "accounts list")),
    ],
)
def test_a_command_loads_nothing_that_it_does_not_need(program: Program, line: str, heavy: set[str]) -> None:
    """What makes a start slow is not imported for it; a count of modules, since a time would flicker."""
    code = (
        f"import sys; sys.argv = ['petstore', *{line.split()}]\n"
        "from petstore.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    assert printed(code, **program.environment).splitlines()[-1] == "[]"


def test_a_service_loads_no_tables_for_terminals() -> None:
    """structlog loads rich where it is installed: 3 MiB of every service, and a tenth of its start."""
    code = (
        "import sys, petstore.server.parent\n"
        "from petstore.server import program\n"
        "program.load(but=['petstore.cli', 'petstore.storage.postgres', 'petstore.limiter.valkey'])\n"
        "print('structlog' in sys.modules, 'rich' in sys.modules)\n"
        "import rich"
    )
    assert printed(code) == "True False\n"
