"""`petstore pets import` and `petstore pets export`: every rule, refusal and way back."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import apsw
import pytest

from petstore.cli.files import whole_file
from petstore.core.lists.table_lists import TableList
from tests.cli.conftest import Cli
from tests.support.cases import every_case

HEADER = "name,categoryId,status\r\n"


@pytest.fixture
def store(empty: Cli) -> Cli:
    return empty


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is written can be made durable."""

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)


def put(cli: Cli, text: str | bytes, name: str = "stock.csv") -> str:
    path = cli.folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def listed(cli: Cli) -> list[tuple[str, int, str]]:
    pets = cli.json("pets", "list", "--limit", "10000")
    return [(pet["name"], pet["categoryId"], pet["status"]) for pet in pets]


def bad_lines(cli: Cli, text: str | bytes, *options: str, name: str = "stock.csv") -> list[str]:
    """What standard error says of a list that is refused, without its last line; nothing is stored."""
    before = listed(cli)
    result = cli.run("pets", "import", put(cli, text, name), *options)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert listed(cli) == before
    *lines, last = result.stderr.splitlines()
    assert last.startswith("petstore: ")
    return lines


class TestCsv:
    def test_columns_stand_in_any_order(self, store: Cli) -> None:
        """The header names them; a status may be missing as a cell or as a column. A byte order mark, as
        spreadsheets write it, is not a name, and empty lines are not rows."""
        text = 'status,name,categoryId\r\nsold,"Lu""na, ""x""",-7\r\n,Rex,9223372036854775807\r\n'
        assert (
            store.ok("pets", "import", put(store, text)) == "2 added, 0 changed, 0 unchanged, 0 rejected.\n"
        )
        store.ok("pets", "import", put(store, "\ufeff\r\ncategoryId,name\r\n\r\n1,Mia\r\n"))
        assert store.ok("pets", "import", put(store, HEADER)).startswith("0 added, 0 changed, 0 unchanged")
        assert listed(store) == [
            ('Lu"na, "x"', -7, "sold"),
            ("Rex", 2**63 - 1, "available"),
            ("Mia", 1, "available"),
        ]

    def test_every_fault_has_its_line(self, store: Cli) -> None:
        """Each fault has its line, in a shop's words and the interface's, also after cells of many lines."""
        text = (
            "name,status,categoryId\n"
            '"Multi\nline",,1\n'
            ",available,x\n"
            "Rex,lost,1.5\n"
            "Rex,sold,99999999999999999999\n"
            "Rex,,\n"
            "Rex,,01\n"
            "Rex,,+1\n"
            "Rex,,\uff11\n"
            "Rex,sold\n"
            "Rex,sold,1,2\n"
            f"{'x' * 256},sold,1\n"
        )
        integer = "categoryId: expected an integer"
        unknown = "is not a category of this store. No category has a name yet, so write its number."
        assert bad_lines(store, text) == [
            "line 2: name: control characters (U+0000 to U+001F, U+007F to U+009F) are not allowed.",
            f"line 4: The name is missing. 'x' {unknown} (name: expected 1 to 255 characters, got 0;"
            f" {integer}, got a string.)",
            "line 5: '1.5' can't be the number of a category. 'lost' is not a status: write available,"
            f" pending, sold. ({integer}, got a number with a fraction or an exponent; status: expected one"
            " of available, pending, sold.)",
            "line 6: '99999999999999999999' can't be the number of a category."
            f" ({integer} from -9223372036854775808 to 9223372036854775807.)",
            "line 7: The category is missing. (categoryId: required.)",
            f"line 8: '01' {unknown} ({integer}, got a string.)",
            f"line 9: '+1' {unknown} ({integer}, got a string.)",
            f"line 10: '\uff11' {unknown} ({integer}, got a string.)",
            "line 11: Expected 3 cells as in the first line, got 2.",
            "line 12: Expected 3 cells as in the first line, got 4.",
            "line 13: name: expected 1 to 255 characters, got 256.",
        ]

    @every_case(
        ("text", "said"),
        [
            (b"x" * 60_000 + b"\n", "The list has '" + "x" * 40 + "…'. Nothing"),
            ("name,categoryId\nÜnal,1\n".encode() + b"\xdcnal,1\n", "Line 2 is in UTF-8, line 3 is not"),
            (b"name,categoryId\n\x81,1\n", "Line 2 is neither UTF-8 nor Windows-1252"),
            (b"\xff\xfen\x00\x00\xd8n\x00", "The list is in broken UTF-16"),
            (b'name,categoryId\nRex,1\n"Mia,1\nPip,1\n', "Line 3 is not CSV"),
            (b'name,categoryId\n"Mia"x,1\n', "Line 2 is not CSV"),
            (b"name,categoryId\n" + b"x" * 70_000 + b",1\n", "Line 2 is longer than 65,536 bytes"),
            (
                b'name,categoryId\n"Mia,1\n' + b"Rex,1\n" * 20_000,
                "The row that begins in line 2 is longer than 65,536 bytes",
            ),
            (b'"\n",' * 20_000, 'in line 1 is longer than 65,536 bytes: a quotation mark (") in it'),
        ],
    )
    def test_a_file_that_is_no_list_is_refused(self, store: Cli, text: bytes, said: str) -> None:
        """One line says what to do, and where the row at fault begins; --skip-bad does not help, since nobody
        knows where the next one does."""
        path = put(store, text)
        for options in ([], ["--skip-bad", str(store.folder / "rejects.csv")]):
            assert said in store.refused(1, "pets", "import", path, *options)
        assert listed(store) == []
        assert [file.name for file in store.folder.glob("rejects*")] == []

    def test_the_output_is_bounded(self, store: Cli) -> None:
        """100 of 250 bad rows are shown, and the number of the others."""
        lines = bad_lines(store, HEADER + "Rex,x,sold\n" * 250)
        assert len(lines) == 101
        assert lines[-1] == "… and 150 more."


class TestJsonLines:
    def test_a_row_is_a_new_pet(self, store: Cli) -> None:
        """One object a line; empty lines and remarks are not rows."""
        text = (
            '\ufeff{"name": "Rex", "categoryId": 1}\n\n# sold ones\n'
            '{"categoryId": -7, "name": "\\u00dc", "status": "sold"}'
        )
        store.ok("pets", "import", put(store, text, "stock.jsonl"))
        assert listed(store) == [("Rex", 1, "available"), ("Ü", -7, "sold")]

    def test_every_fault_has_its_line(self, store: Cli) -> None:
        """The interface's messages; a line that is no JSON does not stop the reading."""
        text = (
            b'{"name": "", "categoryId": "1", "status": null}\n'
            b'{"name": "Rex", "name": "Max", "categoryId": 1, "color": 1, "id": 1}\n'
            b"[]\n"
            b"{oops\n"
            b'{"name": "\xff", "categoryId": 1}\n' + b'{"name": "' + b"x" * 70_000 + b'"}\n'
            b'{"name": "\\ud800", "categoryId": 1.0}'
        )
        lines = bad_lines(store, text, name="stock.jsonl")
        assert lines[:3] == [
            "line 1: name: expected 1 to 255 characters, got 0; categoryId: expected an integer, got a"
            " string; status: expected a string, got null.",
            "line 2: name: sent more than once; 'color': not a member of a row of a stock list; id:"
            " assigned by the service, do not send it.",
            "line 3: Expected an object, got an array.",
        ]
        assert lines[3].startswith("line 4: The line is not well-formed JSON: ")
        assert lines[4:] == [
            "line 5: The line is not UTF-8; send JSON in UTF-8.",
            "line 6: The line is longer than 65,536 bytes.",
            "line 7: name: lone surrogates are not allowed; categoryId: expected an integer, got a number"
            " with a fraction or an exponent.",
        ]

    def test_a_file_that_is_no_list_is_refused(self, store: Cli) -> None:
        """One that was cut off must not look like one without animals; UTF-16 is one line, as of CSV, instead
        of a fault for each row."""
        text = '{"name": "Rex", "categoryId": 1}\n'.encode("utf-16")
        for content, said in ((b"", "empty"), (text, "The list is in UTF-16")):
            assert said in store.refused(1, "pets", "import", put(store, content, "stock.jsonl"))


class TestRefusals:
    def test_nothing_of_a_bad_list_is_stored(self, store: Cli) -> None:
        """One bad row refuses the list, and the last line says what to do."""
        result = store.run("pets", "import", put(store, HEADER + "Rex,1,sold\nMia,x,sold\n"))
        assert result.exit_code == 1
        assert result.stderr.splitlines()[-1] == (
            "petstore: 1 of 2 rows can't be imported; nothing was stored. Correct them, or store the others"
            " with --skip-bad FILE."
        )
        assert listed(store) == []

    def test_what_cannot_be_imported_is_wrong_usage(self, store: Cli) -> None:
        """A missing file, a directory, an unknown format, a key that can't be one, the list as rejects."""
        path = put(store, HEADER)
        for arguments in (
            ["nowhere.csv"],
            [str(store.folder)],
            [put(store, HEADER, "stock.pdf")],
            ["-"],
            [path, "--source-key", "name"],
            [path, "--source-key", "faults"],
            [path, "--source-key", ""],
            [path, "--source-key", 'a"b'],
            [path, "--source-key", "a\\b"],
            [path, "--source-key", "a\nb"],
            [path, "--source-key", "\udcff"],
            [path, "--skip-bad", path],
        ):
            store.refused(2, "pets", "import", *arguments)

    def test_a_missing_database_is_not_made(self, cli: Cli) -> None:
        """An import into a wrong directory would seem to have worked."""
        assert "There is no database" in cli.refused(1, "pets", "import", put(cli, HEADER))
        assert not cli.database.exists()

    def test_a_full_disk(self, store: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        """Room is missing for the temporary file: one line says where, nothing is stored."""

        def full() -> BinaryIO:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(tempfile, "TemporaryFile", full)
        path = put(store, HEADER + "Rex,1,\n")
        assert store.refused(1, "pets", "import", path) == (
            f"petstore: No space left on device: the list needs room in {tempfile.gettempdir()}, its rejects"
            " where they go. Nothing was stored. Make room, or name another directory with TMPDIR.\n"
        )
        assert listed(store) == []

    def test_ctrl_c_while_a_list_is_read_stores_nothing(
        self, store: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Ctrl+C while the list is read ends with 130; nothing is stored and no file is left."""

        def interrupted(self: TableList) -> Any:
            yield from ()
            raise KeyboardInterrupt

        monkeypatch.setattr(TableList, "records", interrupted)
        path = put(store, HEADER)
        result = store.run("pets", "import", path, "--skip-bad", str(store.folder / "rejects.csv"))
        assert result.exit_code == 130
        assert list(store.folder.glob("rejects*")) == []


def test_a_dry_run_says_what_would_happen(store: Cli) -> None:
    """Nothing is stored and no file of rejected rows is written; a bad row still gives 1."""
    store.ok("pets", "import", put(store, "sku,name,categoryId\nA,Rex,1\nB,Mia,1\n"), "--source-key", "sku")
    path = put(store, "sku,name,categoryId\nA,Max,1\nB,Mia,1\nC,Leo,1\n")
    said = store.ok("pets", "import", path, "--source-key", "sku", "--dry-run")
    assert said == "Would be: 1 added, 1 changed, 1 unchanged, 0 rejected.\n"
    assert [name for name, *_ in listed(store)] == ["Rex", "Mia"]
    path = put(store, HEADER + "Rex,1,\nMia,x,\n")
    assert store.run("pets", "import", path, "--dry-run").exit_code == 1
    rejects = store.folder / "rejects.csv"
    result = store.run("pets", "import", path, "--dry-run", "--skip-bad", str(rejects))
    assert (result.exit_code, rejects.exists()) == (0, False)
    assert result.stdout == "Would be: 1 added, 0 changed, 0 unchanged, 1 rejected.\n"


class TestSkipBad:
    def test_rejects_are_corrected_and_imported(self, store: Cli) -> None:
        """The file has the list's columns and cells, and the faults before them, which an import skips."""
        rejects = store.folder / "rejects.csv"
        path = put(store, 'status,name,categoryId\n,Rex,1\nsold,=1+1,x\n,"\'=2",y\nsold,Short\n')
        result = store.run("pets", "import", path, "--skip-bad", str(rejects), "--json")
        assert result.exit_code == 0
        summary = json.loads(result.stdout)
        assert summary.pop("lockedSeconds") >= 0
        assert summary == {"read": 4, "added": 1, "changed": 0, "unchanged": 0, "rejected": 3}
        unknown = "is not a category of this store. No category has a name yet, so write its number."
        detail = "(categoryId: expected an integer, got a string.)"
        assert rejects.read_bytes().decode().splitlines() == [
            "faults,status,name,categoryId",
            f"\"line 3: 'x' {unknown} {detail}\",sold,'=1+1,x",
            f"\"line 4: 'y' {unknown} {detail}\",,'=2,y",
            '"line 5: Expected 3 cells as in the first line, got 2.",sold,Short',
        ]
        corrected = rejects.read_text().replace(",x", ",8").replace(",y", ",9").replace("Short", "Short,7")
        store.ok("pets", "import", put(store, corrected))
        assert listed(store) == [
            ("Rex", 1, "available"),
            ("=1+1", 8, "sold"),
            ("=2", 9, "available"),
            ("Short", 7, "sold"),
        ]

    def test_rejects_of_json_lines(self, store: Cli) -> None:
        """Each bad line as it was, after a remark with its faults, which an import skips."""
        rejects = store.folder / "rejects.jsonl"
        path = put(store, '{"name": "Rex", "categoryId": 1}\n{"name": "Mia"}\n{oops\n', "stock.jsonl")
        store.run("pets", "import", path, "--skip-bad", str(rejects))
        lines = rejects.read_text().splitlines()
        assert lines[:2] == ["# line 2: categoryId: required.", '{"name": "Mia"}']
        assert lines[2].startswith("# line 3: The line is not well-formed JSON")
        assert lines[3:] == ["{oops"]
        rejects.write_text(
            rejects.read_text().replace("{oops", "").replace('"Mia"', '"Mia", "categoryId": 2')
        )
        store.ok("pets", "import", str(rejects))
        assert [name for name, *_ in listed(store)] == ["Rex", "Mia"]

    def test_rows_that_the_store_refuses_are_kept_too(self, store: Cli) -> None:
        """A doubled key or a forbidden transition, in either format, with all members of the row."""
        first = "sku,name,categoryId,status\nA,Rex,1,sold\n"
        store.ok("pets", "import", put(store, first), "--source-key", "sku")
        rejects = store.folder / "rejects"
        text = "status,sku,name,categoryId\npending,A,Rex,1\n,B,Mia,2\n,B,Max,3\n,C,New,4\n"
        options = ["--source-key", "sku", "--skip-bad", str(rejects)]
        store.run("pets", "import", put(store, text), *options)
        assert rejects.read_text().splitlines() == [
            "faults,status,sku,name,categoryId",
            '"line 2: Animal 1 is sold: it can become available, not pending.",pending,A,Rex,1',
            "line 3: sku: line 4 has the same,,B,Mia,2",
            "line 4: sku: line 3 has the same,,B,Max,3",
        ]
        text = '{"name": "Rex", "categoryId": 1, "status": "pending", "sku": "A"}\n'
        store.run("pets", "import", put(store, text, "s.jsonl"), *options)
        assert rejects.read_text().splitlines()[1] == text.strip().replace(": ", ":").replace(", ", ",")
        assert [name for name, *_ in listed(store)] == ["Rex", "New"]

    def test_the_file_appears_with_the_rows(self, store: Cli, full_disk: None) -> None:
        """The rejected rows are on the disk before the others are stored: a failure loses none of them."""
        rejects = store.folder / "rejects.csv"
        path = put(store, HEADER + "Rex,1,\nMia,x,\n")
        assert "No space" in store.refused(1, "pets", "import", path, "--skip-bad", str(rejects))
        assert listed(store) == []
        assert list(store.folder.glob("rejects*")) == []


class TestSourceKey:
    def test_the_same_list_again_changes_nothing(self, store: Cli) -> None:
        """A list stored again changes nothing, in either format, from a file or from standard input."""
        store.ok("pets", "import", put(store, "id,name,categoryId\nA,Rex,1\n"), "--source-key", "id")
        text = '{"id": "A", "name": "Rex", "categoryId": 1}'
        arguments = ("pets", "import", "-", "--format", "jsonl", "--source-key", "id")
        assert store.ok(*arguments, stdin=text) == "0 added, 0 changed, 1 unchanged, 0 rejected.\n"
        with closing(apsw.Connection(str(store.database))) as connection:
            assert connection.execute("SELECT action FROM journal WHERE subject = 'pet'").fetchall() == [
                ("added",)
            ]

    def test_keys_are_texts(self, store: Cli) -> None:
        """Leading zeros count, a missing key is a fault, and JSON needs a string."""
        text = "sku,name,categoryId\n007,Rex,1\n7,Mia,1\n"
        store.ok("pets", "import", put(store, text), "--source-key", "sku")
        assert len(listed(store)) == 2
        assert bad_lines(store, "sku,name,categoryId\n,Rex,1\n", "--source-key", "sku") == [
            "line 2: sku: required."
        ]
        text = '{"sku": 7, "name": "Rex", "categoryId": 1}'
        assert bad_lines(store, text, "--source-key", "sku", name="s.jsonl") == [
            "line 1: sku: expected a string, got an integer."
        ]


class TestExport:
    def test_an_export_is_a_list(self, store: Cli) -> None:
        """It changes nothing where it came from if it has its keys; filters choose animals."""
        text = 'sku,name,categoryId,status,price,note\nA,Rex,1,sold,7,\n=B,-Mia,-2,,,"=1\nx"\n'
        store.ok("pets", "import", put(store, text), "--source-key", "sku")
        assert store.ok("pets", "export", "--source-key", "sku") == (
            "sku,name,categoryId,status,price,note\nA,Rex,1,sold,7.00,\n'=B,'-Mia,-2,available,,\"'=1\nx\"\n"
        )
        assert store.ok("pets", "export", "--status", "sold", "--format", "jsonl") == (
            '{"name":"Rex","categoryId":1,"status":"sold","price":"7.00"}\n'
        )
        assert (
            store.ok("pets", "export", "--category", "-2")
            == "name,categoryId,status,price,note\n'-Mia,-2,available,,\"'=1\nx\"\n"
        )
        names = ("'=x", "''=x", "=x", "'x", "\u2028x", "# x", "\ufeffx")
        rows = "".join(json.dumps({"sku": each, "name": each, "categoryId": 1}) + "\n" for each in names)
        store.ok("pets", "import", put(store, rows, "odd.jsonl"), "--source-key", "sku")
        for name in ("out.csv", "out.jsonl"):
            path = str(store.folder / name)
            assert store.ok("pets", "export", path, "--source-key", "sku") == ""
            assert store.ok("pets", "import", path, "--source-key", "sku").startswith("0 added, 0 changed, 9")

    def test_it_crosses_pages(self, store: Cli) -> None:
        """Every animal once, whatever the number of pages."""
        store.ok("pets", "import", put(store, HEADER + "".join(f"Pet {n},{n},\n" for n in range(1_203))))
        rows = list(csv.reader(io.StringIO(store.ok("pets", "export"))))
        assert [row[0] for row in rows[1:]] == [f"Pet {n}" for n in range(1_203)]

    def test_the_file_appears_whole(self, store: Cli, full_disk: None) -> None:
        """A failure leaves the file of before; the end of a name or --format says what it is."""
        path = store.folder / "out.csv"
        path.write_text("before")
        store.refused(1, "pets", "export", str(path))
        assert [file.read_text() for file in store.folder.glob("out*")] == ["before"]
        store.refused(2, "pets", "export", str(store.folder / "out.txt"))
        workbook = store.folder / "out.xlsx"  # which Excel would not open
        said = store.refused(2, "pets", "export", str(workbook), "--format", "csv")
        assert "end its name with .csv or .jsonl" in said
        assert not workbook.exists()
        store.refused(2, "pets", "export", str(store.folder))
        nowhere = str(store.folder / "nowhere" / "out.csv")
        assert f"{nowhere}: No such file" in store.refused(1, "pets", "export", nowhere)

    def test_files_at_once_are_whole(self, tmp_path: Path) -> None:
        """Two commands that write one file at the same time: the last one's is there, nothing of the other's,
        and a file of the user's with a like name stays."""
        path, like = tmp_path / "out.csv", tmp_path / "out.csv.partial"
        like.write_text("mine")
        with whole_file(path) as first, whole_file(path) as second:
            assert first is not None
            assert second is not None
            first.write(b"first, and longer")
            second.write(b"second")
        assert path.read_text() == "first, and longer"
        assert sorted(tmp_path.iterdir()) == [path, like]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    def test_a_signal_leaves_nothing(self, tmp_path: Path, number: signal.Signals) -> None:
        """The program ends by it, and what was half a list is gone."""
        script = (
            "import os, pathlib, signal\n"
            "from petstore.cli.files import whole_file\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "with whole_file(pathlib.Path('out.csv')) as file:\n"
            "    file.write(b'half')\n"
            f"    os.kill(os.getpid(), {number:d})\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, list(tmp_path.iterdir())) == (-number, [])

    def test_a_device_is_written_to(self, store: Cli) -> None:
        """It is not a file that could be replaced."""
        store.ok("pets", "export", "/dev/null", "--format", "csv")
        assert Path("/dev/null").is_char_device()
