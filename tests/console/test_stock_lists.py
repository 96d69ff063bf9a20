"""Stock lists at the console: sent, checked, agreed to, stored; and exported."""

from __future__ import annotations

import asyncio
import codecs
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from petstore.background import imports
from petstore.console import stock
from petstore.core import uploads
from petstore.core.lists.importing import check_rows
from petstore.core.pets import NewPet, PetChange, PetQuery, PetStatus
from petstore.http.exchange import Exchange
from tests.console.conftest import follow
from tests.support.cases import every_case
from tests.support.console import Shown, Visitor
from tests.support.jobs import carry_out
from tests.support.journal import ACTOR, entries
from tests.support.service import Answer, Shop, open_shop, settle
from tools.exchanges import arriving

LIST = b"name,categoryId,status\r\nRex,1,\r\nMia,x,\r\n=Tom,2,sold\r\n"


async def send(
    visitor: Visitor, content: bytes = LIST, file: str | None = "stock.csv", **fields: str
) -> Shown:
    """Send a list with the form of the page."""
    page = await visitor.get("stock")
    return await visitor.send_file(
        "stock", "list", content, {**page.form("stock").fields, **fields}, file=file
    )


async def check(
    visitor: Visitor, content: bytes = LIST, file: str | None = "stock.csv", **fields: str
) -> Shown:
    """Send a list and have it checked; its page."""
    return await worked_on(await send(visitor, content, file, **fields), visitor)


async def store(shown: Shown, visitor: Visitor) -> Shown:
    """Agree to a report and have the list stored; its page."""
    return await worked_on(await visitor.submit(shown, "/store"), visitor)


async def worked_on(shown: Shown, visitor: Visitor) -> Shown:
    """A page of the console after the background process has done all that there is."""
    await carry_out(visitor.shop.store)
    return await visitor.get(shown.address.removeprefix("/console/"))


async def send_parts(
    shop: Shop, visitor: Visitor, parts: list[tuple[str, str, str]], boundary: str = "X"
) -> Answer:
    """A form of parts (name, file's name, content), in pieces as a server gives them; `boundary` is the one
    that its header names."""
    heads = [f'--X\r\nContent-Disposition: form-data; name="{name}"{file}' for name, file, _ in parts]
    body = "".join(f"{head}\r\n\r\n{part[2]}\r\n" for head, part in zip(heads, parts, strict=True)) + "--X--"
    pieces = [body[at : at + 65_536].encode() for at in range(0, len(body), 65_536)]
    headers = headers_of(visitor, boundary)
    return await shop.call("POST", "/console/stock", headers, arriving(pieces))


def headers_of(visitor: Visitor, boundary: str = "X") -> list[tuple[str, str]]:
    """The headers of a form with a file."""
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    return [("cookie", cookies), ("content-type", f"multipart/form-data; boundary={boundary}")]


def token(page: Shown) -> str:
    return page.form("stock").fields["csrf"]


def head(csrf: str) -> str:
    """The beginning of a form of the page, up to the file's content."""
    before = f'--X\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{csrf}\r\n'
    return before + '--X\r\nContent-Disposition: form-data; name="list"; filename="a.csv"\r\n\r\n'


async def names(shop: Shop) -> list[str]:
    return [pet.name for pet in (await shop.store.pets.page(PetQuery(100))).pets]


async def kept(shop: Shop) -> int:
    return len(await shop.store.uploads.recent())


class TestDay:
    async def test_a_list_with_a_bad_row(self, shop: Shop, staff: Visitor) -> None:
        """The report comes before anything is stored; then the good rows are, once, by who agreed. Meanwhile
        the page says so, and has no button: it can't be stopped half way."""
        shown = await check(staff)
        assert shown.status == 200
        assert "Rows read 3 Would be added 2 Would be changed 0 Unchanged 0 Rejected 1" in shown.text
        assert "categoryId: expected" in shown.text
        assert " Mia,x," in shown.text
        assert await names(shop) == []
        form = shown.form("/store")
        assert form.buttons == ["Store the 2 rows that are good"]
        storing, _ = await asyncio.gather(*(staff.submit(shown, "/store") for _ in range(2)))
        assert "Storing 2 animals: all of them or none." in storing.text
        assert [form.action for form in storing.forms if "stock/1" in form.action] == []
        done = await worked_on(shown, staff)
        assert "Added 2" in done.text
        assert await names(shop) == ["Rex", "=Tom"]
        assert {entry.actor for entry in await entries(shop.store, "pet:1")} == {"console:a-staff"}
        assert done.links["See the entries in the journal"].endswith("journal?actor=console%3Aa-staff")

    async def test_an_import_is_one_line_of_the_journal(self, shop: Shop, staff: Visitor) -> None:
        """An import is one line of the journal and the overview; it leads to the entries of its animals, and
        earlier ones follow, however many it has."""
        await shop.store.pets.add(NewPet("Older", 1), ACTOR)
        many = b"name,category\n" + b"".join(b"Rex %d,1\n" % number for number in range(700))
        await store(await check(staff, many, "dogs.csv"), staff)
        await shop.store.pets.add(NewPet("Newer", 1), ACTOR)
        page = await staff.get("journal")
        assert page.text.count("Animal added") == 2
        assert "700 animals from a list dogs.csv added: 700" in page.text
        assert "Earlier entries" not in page.links
        assert "700 animals from a list" in (await staff.get("")).text
        its = await follow(staff, page, "dogs.csv")
        assert "700 animals from a list, dogs.csv, by a-staff" in its.text
        assert "Rex 699" in its.text
        earlier = await follow(staff, its, "Earlier entries")
        assert "Rex 649" in earlier.text

    async def test_a_list_is_reverted(self, shop: Shop, staff: Visitor) -> None:
        """A page says what will happen; animals in the way are links. Then the list's page says who took it
        back, the journal has it as one line, and a colleague's old page does nothing."""
        many = b"name,category\n" + b"".join(b"Rex %d,1\n" % number for number in range(7))
        stored = await store(await check(staff, many, "dogs.csv"), staff)
        page = await follow(staff, stored, "Take this list back")
        assert "7 animals that it added are removed" in page.text
        await shop.store.pets.change(3, PetChange(name="Max"), ACTOR)
        asked = await staff.submit(page, "/taking-back")
        assert "Taking it back: all animals or none" in asked.text
        kept = await worked_on(asked, staff)
        assert "changed, ordered or removed since: 3" in kept.text
        assert kept.links["Animal 3"].endswith("pets/3")
        assert len(await names(shop)) == 7
        again = await store(await check(staff, many, "cats.csv"), staff)
        its = await follow(staff, again, "Take this list back")
        colleague = await Visitor(shop).sign_in_as("staff", "colleague")
        old = await colleague.get(its.address.removeprefix("/console/"))
        shop.clock.advance(1)
        done = await worked_on(await staff.submit(its, "/taking-back"), staff)
        assert "Taken back by a-staff" in done.text
        assert "7 animals removed" in (await staff.get("stock/2")).text
        assert "7 animals taken back from a list cats.csv removed: 7" in (await staff.get("journal")).text
        its_entries = await follow(staff, done, "See the entries")
        assert its_entries.text.count("name: Rex") == 7
        assert "Take this list back" not in its_entries.links
        refused = await colleague.submit(old, "/taking-back")
        assert "taken back already, by a-staff" in refused.text
        assert (await staff.get("journal/1/taking-back")).status == 404

    async def test_rejects_are_corrected_and_sent(self, shop: Shop, staff: Visitor) -> None:
        """The download has the list's format; with its column of faults it is taken as it is."""
        shown = await check(staff)
        assert shown.links["Download all of them"].endswith("stock/1/rejects")
        file = await staff.get("stock/1/rejects")
        assert file.headers["content-disposition"] == 'attachment; filename="rejects-1.csv"'
        assert file.body.startswith(codecs.BOM_UTF8 + b"faults,name,categoryId,status\r\n")
        again = await check(staff, file.body.replace(b"Mia,x", b"Mia,3"))
        assert again.form("/store").buttons == ["Store it"]

    async def test_source_keys_and_json_lines(self, shop: Shop, staff: Visitor) -> None:
        """A list that is sent again changes what has changed, and says so before."""
        line = b'{"sku":"A","name":"Rex","categoryId":1}\n'
        await store(await check(staff, line, "a.jsonl", key_name="sku"), staff)
        same = await check(staff, line, "a.jsonl", key_name="sku")
        assert "all animals are as the list says" in same.text
        assert [form.action for form in same.forms if form.action.endswith("store")] == []
        changed = await check(staff, line.replace(b"Rex", b"Max"), "list", form="jsonl", key_name="sku")
        assert "Would be changed 1" in changed.text
        await store(changed, staff)
        assert await names(shop) == ["Max"]

    async def test_animals_changed_meanwhile(self, shop: Shop, staff: Visitor) -> None:
        """What was agreed to is stored, or nothing and the new report is shown."""
        line = b"sku,name,categoryId\r\nA,Rex,1\r\n"
        await store(await check(staff, line, key_name="sku"), staff)
        shown = await check(staff, line.replace(b"Rex", b"Max"), key_name="sku")
        await shop.store.pets.remove(1, ACTOR)
        after = await store(shown, staff)
        assert "would do something else now" in after.text
        assert "Would be added 1" in after.text
        assert await names(shop) == []

    async def test_the_files_name(self, staff: Visitor) -> None:
        """It is shown without folders; a character that turns the text around is seen, and turns nothing."""
        shown = await check(staff, file="C:/lists/a\u202eb.csv")
        assert "a\\u202eb.csv" in shown.text
        shown = await check(
            staff, file="/", form="csv"
        )  # nothing is left of it, and nobody finds a nameless link
        assert b"<h1>list</h1>" in shown.body

    async def test_a_discarded_list_is_told_forgotten_and_nothing_stored(
        self, shop: Shop, staff: Visitor
    ) -> None:
        """Who changes their mind may send it again."""
        shown = await check(staff)
        told = await staff.submit(shown, "/discard")
        assert "Discarded; nothing of the list was stored." in told.text
        assert "was discarded" in (await staff.get("stock/1")).text
        assert (await staff.submit(shown, "/store")).text.count("This list is discarded; send it again.") == 1
        assert await names(shop) == []

    async def test_a_list_that_can_not_be_read(self, shop: Shop, staff: Visitor) -> None:
        """It is refused with the reason and what to do; there is nothing to agree to."""
        shown = await check(staff, b"%PDF-1.7\n")
        assert "Ask the supplier for the list as CSV or Excel." in shown.text
        assert [form.action for form in shown.forms if "stock" in form.action] == []

    async def test_columns_that_nobody_knows(self, shop: Shop, staff: Visitor, viewer: Visitor) -> None:
        """A person says which is which, once: the next list with these columns goes straight on, for all.

        What they mean is part of what is agreed to.
        """
        text = "Nr;Bezeichnung;Tierart\n7;Rex;1\n".encode("utf-16")
        shown = await check(staff, text, "list.txt")
        assert "No column is the category" in shown.text
        page = await staff.get("stock/1/columns")
        assert "Bezeichnung Rex" in page.text
        fault = await staff.submit(page, "/columns", column1="name", column2="name")
        assert "Another column is the name already." in fault.text
        assert "Choose the column that is the name." in (await staff.submit(page, "/columns")).text
        told = await staff.submit(page, "/columns", column0="key", column1="name", column2="categoryId")
        again = await worked_on(told, staff)
        assert "Would be added 1" in again.text
        assert (await viewer.get("stock/1/columns")).status == 403
        other = await Visitor(shop).sign_in_as("staff", "otto")
        done = await store(await check(other, b"Tierart,Nr,Bezeichnung\n1,7,Rex\n"), other)
        assert "Added 1" in done.text
        assert (await staff.get("stock/1")).links["Change the columns"].endswith("stock/1/columns")
        same = await worked_on(await staff.submit(again, "/store"), staff)
        assert "would do something else now" in same.text
        assert "Unchanged 1" in same.text
        assert await names(shop) == ["Rex"]

    async def test_others_may_read(self, staff: Visitor, viewer: Visitor, shop: Shop) -> None:
        """A viewer sees lists and reports without buttons; other staff may go on with them."""
        await check(staff)
        for path in ("stock", "stock/1"):
            seen = await viewer.get(path)
            assert seen.status == 200
            assert [form.method for form in seen.forms if "stock" in form.action] in ([], ["GET"])
        other = await Visitor(shop).sign_in_as("staff", "otto")
        done = await store(await other.get("stock/1"), other)
        assert "Stored by otto" in done.text


class TestRefusals:
    @every_case(
        ("content", "file", "fields", "message"),
        [
            (b"", "stock.csv", {}, "The file is empty."),
            (b"", "", {}, "Choose a file first."),
            (LIST, None, {}, "Choose a file first."),
            (LIST, "stock.pdf", {}, "choose Excel or CSV, or JSON lines"),
            (LIST, "stock.csv", {"form": "xml"}, "choose Excel or CSV, or JSON lines"),
            (LIST, "stock.csv", {"key_name": "name"}, "can't be the column of the source keys"),
        ],
    )
    async def test_what_is_wrong_stands_in_the_form(
        self,
        shop: Shop,
        staff: Visitor,
        content: bytes,
        file: str | None,
        fields: dict[str, str],
        message: str,
    ) -> None:
        """Nothing is kept; what was typed is still there."""
        shown = await send(staff, content, file, **fields)
        assert (shown.status, await kept(shop)) == (400, 0)
        assert message in shown.text
        if "key_name" in fields:
            assert shown.form("stock").fields["key_name"] == fields["key_name"]

    async def test_a_list_that_is_too_large_is_refused_unread(
        self, shop: Shop, staff: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The announced length, or what has arrived, refuses it before the whole of it is read."""
        monkeypatch.setattr(stock, "UPLOAD_BYTES_MAX", 1_000)
        monkeypatch.setattr(stock, "_FORM_BYTES_MAX", 1_000)
        shown = await send(staff, b"x" * 1_001)
        assert (shown.status, "Split it" in shown.text, await kept(shop)) == (413, True, 0)
        start = head(token(await staff.get("stock")))
        pieces = [start.encode(), *[b"x" * 100] * 100]
        answer = await shop.call("POST", "/console/stock", headers_of(staff), arriving(pieces, ends=False))
        assert (answer.status, await kept(shop)) == (413, 0)
        announced = [*headers_of(staff), ("content-length", "2001")]
        answer = await shop.call("POST", "/console/stock", announced, arriving([], ends=False))
        assert answer.status == 413

    async def test_a_list_that_does_not_arrive_whole(self, shop: Shop, staff: Visitor) -> None:
        """Nothing of it is kept when the browser goes away, or leaves out the end."""
        body = head(token(await staff.get("stock"))) + "name,cat"
        for leaves in (True, False):
            sent = arriving([body.encode()], leaves=leaves)
            answer = await shop.call("POST", "/console/stock", headers_of(staff), sent)
            assert (answer.status, b"did not arrive whole" in answer.body) == (400, True)
        assert await kept(shop) == 0

    async def test_a_list_that_drips(
        self, shop: Shop, staff: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has ten minutes in all, however steadily its bytes come; nothing of it is kept."""
        loop, now = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        csrf = token(await staff.get("stock"))
        monkeypatch.setattr(loop, "time", lambda: now)
        arrived = 0

        async def drip(exchange: Exchange) -> None:
            nonlocal arrived, now
            for piece in pieces:
                now += 4.9 if arrived else 0
                arrived += 1
                exchange.feed(piece)
                await settle()
            exchange.complete()

        pieces = [head(csrf).encode(), b"name,categoryId\r\n", *[b"Rex,1\r\n"] * 500, b"--X--\r\n"]
        answer = await shop.call("POST", "/console/stock", headers_of(staff), drip)
        assert (answer.status, b"did not arrive in time" in answer.body) == (408, True)
        assert (arrived < len(pieces), await kept(shop)) == (True, 0)

    async def test_a_form_with_too_many_parts(self, shop: Shop, staff: Visitor) -> None:
        """It is refused at once: a form of 64 MiB could have 6 million parts, and take the server's time."""
        fields = {"csrf": token(await staff.get("stock")), **{f"f{number}": "" for number in range(30)}}
        shown = await staff.send_file("stock", "list", LIST, fields, file="stock.csv")
        assert (shown.status, await kept(shop)) == (400, 0)

    @every_case("size", [10, 600_000])  # at once, and while it is kept
    async def test_two_lists_in_a_form(self, shop: Shop, staff: Visitor, size: int) -> None:
        """Are not joined to one: nothing is kept, and the page says what to do."""
        parts = [("list", f'; filename="{name}"', "x" * size) for name in ("a.csv", "b.jsonl")]
        csrf = "csrf", "", token(await staff.get("stock"))
        answer = await send_parts(shop, staff, [csrf, *parts])
        assert (answer.status, await kept(shop)) == (400, 0)
        assert "Send one list at a time; this form has several." in Shown("stock", answer).text

    async def test_what_packages_log_is_json_too(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """The lines of the form's parser and of asyncio are JSON, as all lines are."""
        async with open_shop(tmp_path) as shop:
            staff = await Visitor(shop).sign_in_as("staff")
            assert (await send_parts(shop, staff, [("list", "", "")], boundary="Y")).status == 400
            logging.getLogger("asyncio").error("%s was lost", "a task", exc_info=ZeroDivisionError("why"))
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
        found = {line.get("logger"): line for line in lines}
        assert found["python_multipart.multipart"]["level"] == "warning"
        assert found["asyncio"]["event"] == "a task was lost"
        assert "ZeroDivisionError: why" in found["asyncio"]["exception"]

    async def test_no_token_and_no_form(self, shop: Shop, staff: Visitor) -> None:
        """Nothing is read or kept that comes without the page's token, or as another kind of body."""
        assert (await send(staff, csrf="")).status == 403
        assert (await staff.post("stock", {"list": "x"})).status == 403
        kind = ("content-type", f"multipart/form-data; boundary={'b' * 300}")
        assert (await staff.post("stock", {}, headers=[kind])).status == 403
        assert await kept(shop) == 0

    @every_case("charset", ["undefined", '"\0"', "unicode_escape", "utf-16"])
    async def test_a_form_in_another_charset(self, shop: Shop, staff: Visitor, charset: str) -> None:
        """No browser names one: whatever it does to the parser, the answer is a page with 400."""
        csrf = "csrf", "", token(await staff.get("stock")) + r"\ud800"
        answer = await send_parts(
            shop, staff, [csrf, ("list", '; filename="a.csv"', "x")], boundary=f"X; charset={charset}"
        )
        assert (answer.status, await kept(shop)) == (400, 0)
        assert "The form can't be read; load its page again." in Shown("stock", answer).text

    @pytest.mark.parametrize(
        ("module", "bound", "told"),
        [
            (uploads, "OPEN_FOR_A_PERSON", "Store or discard one first."),
            (stock, "_ARRIVING_FOR_A_PERSON", "Other lists are on their way."),
        ],
    )
    async def test_a_list_beyond_the_bound_of_its_sender_is_refused(
        self,
        shop: Shop,
        staff: Visitor,
        monkeypatch: pytest.MonkeyPatch,
        module: object,
        bound: str,
        told: str,
    ) -> None:
        """Who has too many lists that are not stored, or on their way, gets no room for one more."""
        monkeypatch.setattr(module, bound, 0)
        shown = await send(staff)
        assert (shown.status, told in shown.text, await kept(shop)) == (409, True, 0)


class TestMeanwhile:
    """What the page says while the background process works, or does not."""

    async def test_one_after_the_other(
        self, shop: Shop, staff: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The page loads itself again without JavaScript, with it at first after half a second; who waits
        sees whose list is worked on."""
        other = await Visitor(shop).sign_in_as("staff", "otto")
        shown = await send(staff)
        assert "This list waits to be checked." in shown.text
        assert b'http-equiv="refresh"' in shown.body
        assert b'hx-trigger="load delay:500ms, every 2s"' in shown.body
        assert [form.buttons for form in shown.forms if "stock/1" in form.action] == [["Discard"]]
        await send(other)
        seen = []
        read = check_rows

        def check_rows_and_ask(*arguments: Any) -> int:
            pages = [staff.get("stock/1"), other.get("stock/2")]
            seen.extend([asyncio.run_coroutine_threadsafe(page, loop).result() for page in pages])
            return read(*arguments)

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(imports, "check_rows", check_rows_and_ask)
        await carry_out(shop.store)
        checking, waiting = seen[:2]
        assert "Checking: 0 rows so far." in checking.text
        assert [form.action for form in checking.forms if "stock/1" in form.action] == []
        assert "This list waits: a-staff is checking stock.csv." in waiting.text
        assert b'http-equiv="refresh"' in waiting.body
        assert b'hx-trigger="every 2s"' in waiting.body
        assert "Would be added 2" in (await other.get("stock/2")).text

    async def test_a_step_that_failed_can_be_taken_again(
        self, shop: Shop, staff: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The list is as before the step; the page says that nothing was stored, and what to do."""
        monkeypatch.setattr(imports, "check_rows", lambda *_: 1 // 0)
        shown = await check(staff)
        assert "Something went wrong on our side; nothing was stored." in shown.text
        assert [form.buttons for form in shown.forms if form.action.endswith("check")] == [["Check now"]]
        monkeypatch.undo()
        shown = await worked_on(await staff.submit(shown, "/check"), staff)
        assert "Would be added 2" in shown.text
        assert await kept(shop) == 1


async def test_animals_as_a_list(shop: Shop, viewer: Visitor) -> None:
    """A file with the day in its name, which can be sent again; no spreadsheet runs a name."""
    for number in range(1_001):
        await shop.store.pets.add(NewPet(f"=Rex {number}", number % 2, PetStatus.SOLD), ACTOR)
    await shop.store.categories.name(1, "Dogs", ACTOR)
    file = await viewer.get("stock/export?form=csv&status=sold&category=dogs")
    assert file.headers["content-disposition"] == 'attachment; filename="stock-2027-01-15.csv"'
    rows = file.body.decode("utf-8-sig").splitlines()
    assert rows[:2] == ["name,categoryId,status,price,note", "'=Rex 1,1,sold,,"]
    assert len(rows) == 1 + 500
    lines = (await viewer.get("stock/export?form=jsonl")).body.splitlines()
    assert (len(lines), lines[0]) == (1_001, b'{"name":"=Rex 0","categoryId":0,"status":"sold"}')
