"""The nouns of a store, listed once: each store builds on them, and pages and jobs take them."""

from __future__ import annotations

from petstore.core.clock import Clock
from petstore.core.search import SearchIndex
from petstore.core.stock import StockRepository
from petstore.core.totals import TotalsRepository
from petstore.transactions.accounts import ANY_ACCOUNT, Accounts
from petstore.transactions.billing import Billing
from petstore.transactions.categories import Categories
from petstore.transactions.contacts import Contacts
from petstore.transactions.customers import Customers
from petstore.transactions.deliverers import Deliverers
from petstore.transactions.deliveries import Deliveries
from petstore.transactions.events import Events
from petstore.transactions.facts import Facts
from petstore.transactions.idempotency import REMOVE_OLD
from petstore.transactions.jobs import Jobs
from petstore.transactions.journal import Journal
from petstore.transactions.keys import Keys
from petstore.transactions.list_reverts import ListReverts
from petstore.transactions.notifications import Notifications
from petstore.transactions.orders import Orders
from petstore.transactions.people import People
from petstore.transactions.pets import Pets
from petstore.transactions.refusals import Refusals
from petstore.transactions.retention import Retention
from petstore.transactions.script import Database, remove_all, rows_of
from petstore.transactions.search import Search
from petstore.transactions.sign_ins import SignIns, purge_sign_ins
from petstore.transactions.stages import Stages
from petstore.transactions.staging import Staging
from petstore.transactions.uploads import Uploads
from petstore.transactions.usage import Usage
from petstore.transactions.webhooks import Webhooks


class Repositories:
    """The repositories of a store. Those that differ between the databases are arguments."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        pets: Pets,
        stock: StockRepository,
        keys: Keys,
        totals: TotalsRepository,
        index: SearchIndex,
    ) -> None:
        self._database = database
        self._clock = clock
        self.pets = pets
        self.stock = stock
        self.keys = keys
        self.totals = totals
        self.uploads, self.list_reverts = Uploads(database, clock), ListReverts(database, clock)
        self.jobs = Jobs(database, clock)
        self.orders = Orders(database, clock)
        self.categories = Categories(database, clock)
        self.accounts = Accounts(database, clock)
        self.customers = Customers(database, clock)
        self.journal = Journal(database, clock)
        self.events = Events(database, clock)
        self.search = Search(database, clock, self.events, index)
        self.webhooks = Webhooks(database, clock)
        self.deliverers = Deliverers(database, clock)
        self.deliveries = Deliveries(database, clock)
        self.contacts = Contacts(database, clock)
        self.notifications = Notifications(database, clock)
        self.facts = Facts(database, clock)
        self.retention = Retention(database, clock)
        self.stages = Stages(database, clock)
        self.staging = Staging(database, clock)
        self.usage = Usage(database, clock)
        self.refusals = Refusals(database, clock)
        self.billing = Billing(database, clock)
        self.people = People(database, clock)
        self.sign_ins = SignIns(database, clock)

    async def is_empty(self) -> bool:
        """Whether no account exists, as at a first start."""
        return not await self._database.read(rows_of(ANY_ACCOUNT))

    async def purge(self, now_ms: int) -> None:
        """Delete uploads and Idempotency-Keys older than 24 hours, and ended sessions, links and tries."""
        await remove_all(self._database, REMOVE_OLD, self._clock.pinned_ms())
        await purge_sign_ins(self._database, now_ms)
        await self.uploads.purge()
