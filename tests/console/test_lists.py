"""What all lists have: pages in both directions, the number of rows, the other order, all of it as CSV."""

from __future__ import annotations

import codecs
import csv
import io

import pytest

from petstore.core.limits.plans import FREE
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet, PetStatus
from tests.console.conftest import follow
from tests.support.backends import execute_in_file
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR, entries
from tests.support.service import Shop

_ROWS = 50


@pytest.fixture
async def shop_with_many(shop: Shop) -> Shop:
    """120 animals, and an order of each of the first 60."""
    pets = ", ".join(f"('P{number:03d}', {number % 2}, 'available')" for number in range(1, 121))
    execute_in_file(shop.path, f"INSERT INTO pets (name, category_id, status) VALUES {pets}")
    for pet_id in range(1, 61):
        await shop.store.orders.place(1, NewOrder(pet_id), ACTOR)
    return shop


def below(address: str) -> str:
    """An address of a link, below the console."""
    return address.partition("console/")[2]


def numbers(shown: Shown) -> list[int]:
    """The rows of a list, by their boxes."""
    body = shown.body.decode()
    return [int(part.partition('"')[0]) for part in body.split('name="row-')[1:]]


async def rows_of(visitor: Visitor, address: str) -> list[list[str]]:
    """A file as a spreadsheet reads it."""
    file = await visitor.get(address)
    assert (file.status, file.headers.get("content-type")) == (200, "text/csv; charset=utf-8")
    assert file.body.startswith(codecs.BOM_UTF8)  # by which Excel knows UTF-8
    return list(csv.reader(io.StringIO(file.body.decode("utf-8-sig"), newline="")))


@pytest.mark.usefixtures("shop_with_many")
class TestPages:
    """Fifty rows each."""

    @pytest.mark.parametrize(
        ("list_", "found"),
        [
            ("pets", range(1, 121)), ("pets?order=oldest&status=available", range(61, 121)),
            ("pets?q=p&status=available&order=oldest", range(61, 121)), ("orders", range(1, 61)),
            ("orders?state=all&account=1&first=oldest", range(1, 61)),
        ],
    )  # fmt: skip
    async def test_back_the_way_one_came(self, shop: Shop, staff: Visitor, list_: str, found: range) -> None:
        """Each row is on one page, with the filters; the same pages from the last to the first, to which each
        leads. A search leads to that alone."""
        await shop.index()
        shown = await staff.get(list_)
        pages = [numbers(shown)]
        while "Next page" in shown.links:
            shown = await follow(staff, shown, "Next page")
            pages.append(numbers(shown))
        rows = [number for page in pages for number in page]
        assert (len(pages[0]), rows in (list(found), list(found)[::-1])) == (_ROWS, True)
        assert numbers(await follow(staff, shown, "First page")) == pages[0]
        for page in pages[-2::-1] if "q=" not in list_ else ():
            shown = await follow(staff, shown, "Previous page")
            assert numbers(shown) == page
        assert ("First page" in shown.links, "Previous page" in shown.links) == ("q=" in list_, False)

    async def test_less_than_a_page_before_is_the_first_page(self, staff: Visitor) -> None:
        """A place with few rows before it shows the first page. A place that no page links to is refused."""
        assert numbers(await staff.get("pets?before=100")) == numbers(await staff.get("pets"))
        assert (await staff.get("pets?before=x")).status == 400

    async def test_how_many_there_are(
        self, staff: Visitor, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each page counts what its filters leave; above a bound it is not counted further."""
        assert "50 of 120" in (await staff.get("pets?before=30")).text
        assert "30 of 30" in (await staff.get("pets?category=1&status=available")).text
        await shop.store.accounts.add("zoo", FREE, ACTOR)
        assert "50 of 60" in (await staff.get("orders?account=1")).text
        for module in ("petstore.transactions.query", "petstore.console.lists"):
            monkeypatch.setattr(f"{module}.COUNTED_MAX", 100)
        assert "50 of 100+" in (await staff.get("pets")).text

    async def test_the_head_turns_the_order(self, staff: Visitor) -> None:
        """It keeps the filters, and says which order it is."""
        for list_, title in (("pets?status=available", "Number"), ("orders?account=1", "Order")):
            shown = await staff.get(list_)
            turned = await follow(staff, shown, title)
            assert sorted(numbers(turned)) != sorted(numbers(shown))
            heads = {
                page.body.decode().partition('aria-sort="')[2].partition('"')[0] for page in (shown, turned)
            }
            assert heads == {"ascending", "descending"}
            assert numbers(await follow(staff, turned, title)) == numbers(shown)

    async def test_filters_are_cleared(self, staff: Visitor) -> None:
        """A link clears them where one is set; the state of orders is a list of its own."""
        for list_, cleared in (
            ("pets?status=sold", "pets"),
            ("orders?state=placed&account=1", "orders?state=placed"),
            ("accounts?plan=free", "accounts"),
            ("journal?actor=cli", "journal"),
        ):
            shown = await staff.get(list_)
            assert below(shown.links["Clear filters"]) == cleared
            assert "Clear filters" not in (await staff.get(cleared)).links


class TestCsv:
    """A list as it is filtered, whole."""

    async def test_each_list_can_be_taken_as_csv(self, shop: Shop, viewer: Visitor) -> None:
        """A link gives it to everybody who sees the list. No spreadsheet runs a name."""
        await shop.store.pets.add(NewPet("=Rex", 1), ACTOR)
        await shop.store.pets.add(NewPet("Mia", 1, PetStatus.SOLD), ACTOR)
        await shop.store.categories.name(1, "Dogs", ACTOR)
        await shop.store.orders.place(1, NewOrder(1, reference="A-7"), ACTOR)
        await shop.index()
        for list_, row in (
            ("pets?status=pending", ["1", "'=Rex", "1", "pending", "", "", "Dogs"]),
            ("pets?q=mi", ["2", "Mia", "1", "sold", "", "", "Dogs"]),
            (
                "orders?account=tests",
                ["1", "tests", "1", "'=Rex", "placed", "A-7", "2027-01-15T08:00:30.000Z", ""],
            ),
            ("accounts?q=te", ["1", "tests", "enterprise"]),
            ("accounts/1/keys", ["1", "pets_test_"]),
            (
                "journal?about=category:1",
                [
                    "",
                    "2027-01-15T08:00:30.000Z",
                    ACTOR,
                    "Category named",
                    "category 1",
                    "",
                    '{"name":"Dogs"}',
                ],
            ),
        ):
            link = below((await viewer.get(list_)).links["CSV"])
            _, found = await rows_of(viewer, link)
            assert all(cell.startswith(part) for cell, part in zip(found, row, strict=False)), (link, found)

    async def test_however_long_it_is(
        self, shop_with_many: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every row once, in the list's order, read in pieces."""
        monkeypatch.setattr("petstore.console.exports._AT_A_TIME", 50)
        found = await rows_of(viewer, "pets.csv?order=oldest")
        assert [row[0] for row in found[1:]] == [str(number) for number in range(1, 121)]
        found = await rows_of(viewer, "journal.csv")
        assert [row[0] for row in found[:0:-1]] == [
            str(each.id) for each in await entries(shop_with_many.store)
        ]

    async def test_a_wrong_filter_leads_to_the_list(self, viewer: Visitor) -> None:
        """The list says what is wrong with the filter."""
        for list_, told in (
            ("pets.csv?status=eaten", "Choose one of"),
            ("orders.csv?account=nobody", "nobody"),
            ("accounts.csv?plan=x", "Choose one of"),
            ("journal.csv?about=x", "Nothing is called"),
            ("journal.csv?about=account:nobody", "nobody"),
            ("pets.csv?q=rex", "The index of names is being made."),
            ("accounts.csv?q=te", "The index of names is being made."),
        ):
            shown = await viewer.get(list_)
            assert (shown.address.endswith(".csv"), told in shown.text) == (False, True), list_
