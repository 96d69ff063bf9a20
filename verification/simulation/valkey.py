"""A Valkey for the simulation: one core, the scripts, and everything that can happen to it.

Speaks the protocol, so the service's own client talks to it. quota.decide decides what take.lua would.
Keys never expire here: a run is shorter than that.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable

import libvalkey

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.plans import WINDOWS
from petstore.core.limits.quota import decide
from petstore.core.limits.windows import AccountWindows, later_windows, openings, roll
from petstore.limiter.valkey.scripts import CATALOGUE, CATALOGUE_WRITERS, KEYRING, KEYRING_WRITERS, Scripts
from verification.simulation.network import Delays, Pipe
from verification.simulation.virtual import EPOCH_MS, VirtualLoop

_OUTCOMES = {(True, False): 2, (False, False): 3, (False, True): 4}


def _integers(text: bytes) -> list[int]:
    return [int(number) for number in text.split()]


class _Data:
    """What a snapshot holds. `history` is the name noted beside the epoch, 0 for none."""

    def __init__(self) -> None:
        self.accounts: dict[bytes, AccountWindows] = {}
        self.keys: dict[bytes, BanState] = {}
        self.epochs: dict[bytes, int] = {}
        self.versions: dict[bytes, int] = {}
        self.writers: dict[bytes, dict[bytes, float]] = {CATALOGUE_WRITERS: {}, KEYRING_WRITERS: {}}
        self.epoch = self.history = 0


def _record(text: bytes) -> BanState:
    return BanState() if text == b"-" else BanState(*_integers(text))


class SimulatedValkey:
    """Four flags leave out a step of the protocol, to show that the simulation would see it.

    `marks` off: the begin of a write leaves no mark. `moves` off: its end does not move the version. `torn`
    on: records are read in one round trip and written in another. `doubts` off: records of an earlier epoch
    count.
    """

    def __init__(self, loop: VirtualLoop, delays: Delays, policy: BanPolicy, service_seconds: float) -> None:
        self._loop = loop
        self._delays = delays
        self._policy = policy
        self._service_seconds = service_seconds
        self._scripts = Scripts()
        self._readers: dict[Pipe, libvalkey.Reader] = {}
        self._free_at = 0.0
        self.marks = self.moves = True
        self.torn = False
        self.doubts = True
        self.is_down = self.hangs = False
        self.cut_off: set[str] = set()
        self.calls = 0
        self.busy_seconds = 0.0
        self._data = _Data()
        self._snapshot = _Data()
        self._history = 1
        loop.connect = self._connect

    def empty(self) -> None:
        """Everything is forgotten, as by a restart without a file."""
        self._data = _Data()

    def save(self) -> None:
        """Write a snapshot."""
        self._snapshot = copy.deepcopy(self._data)

    def load(self) -> None:
        """Go on from the snapshot: what came after it is forgotten."""
        self._data = copy.deepcopy(self._snapshot)

    def kill(self) -> None:
        """Connections are reset, and new ones refused, until `is_down` is taken back."""
        self.is_down = True
        self._history += 1
        for pipe in list(self._readers):
            pipe.abort()
        self._readers.clear()

    def reaches(self, host: str) -> bool:
        return not (self.is_down or self.hangs or host in self.cut_off)

    def _connect(
        self, factory: Callable[[], asyncio.Protocol], host: str
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        if self.is_down:
            raise ConnectionRefusedError("it is down")
        protocol = factory()
        pipe = Pipe(self._loop, self._delays, self, protocol, host)
        self._readers[pipe] = libvalkey.Reader()
        protocol.connection_made(pipe)
        return pipe, protocol

    def arrived(self, pipe: Pipe, data: bytes) -> None:
        """Commands, carried out one after another on the one core."""
        reader = self._readers.get(pipe)
        if reader is None or pipe.closed or not self.reaches(pipe.host):
            return
        reader.feed(data)
        answers = []
        while (parts := reader.gets()) is not False:
            began = max(self._loop.time(), self._free_at)
            self._free_at = began + self._service_seconds
            self.busy_seconds += self._service_seconds
            answers.append(self._answer(parts, EPOCH_MS * 1_000 + int(began * 1_000_000)))
        pipe.answer(b"".join(answers), self._free_at)

    def _answer(self, parts: list[bytes], now_us: int) -> bytes:
        if parts[0] == b"EVAL":
            return b":%d\r\n" % self._arrive(now_us)
        if parts[0] != b"EVALSHA":
            return b"+OK\r\n"
        self.calls += 1
        keys, arguments = parts[3 : 3 + int(parts[2])], parts[3 + int(parts[2]) :]
        if parts[1] == self._scripts.take.digest:
            askers = (len(keys) - 5) // 2
            more = arguments[1 + askers :]
            replies = [
                self._take(keys[5 + 2 * at :][:2], [arguments[1 + at], *more], now_us) for at in range(askers)
            ]
            return b"*%d\r\n" % len(replies) + b"".join(
                b"*%d\r\n" % len(numbers) + b"".join(b":%d\r\n" % number for number in numbers)
                for numbers in replies
            )
        self._publish(keys, arguments, now_us)
        return b":1\r\n"

    def _arrive(self, now_us: int) -> int:
        """Arrive as arrive.lua does."""
        data = self._data
        if data.epoch and data.history == self._history:
            return 0
        had_one = data.epoch > 0
        data.epoch, data.history = max(data.epoch + 1, now_us), self._history
        self._move(CATALOGUE, now_us)
        self._move(KEYRING, now_us)
        return int(had_one)

    def _publish(self, keys: list[bytes], arguments: list[bytes], now_us: int) -> None:
        for version, writers in zip(keys[::2], keys[1::2], strict=True):
            if arguments[0] == b"begin":
                if not self.marks:
                    continue
                self._data.writers[writers][arguments[1]] = now_us // 1_000 + int(arguments[2])
            else:
                self._data.writers[writers].pop(arguments[1], None)
                if self.moves:
                    self._move(version, now_us)

    def _move(self, version: bytes, now_us: int) -> None:
        self._data.versions[version] = max(self._data.versions.get(version, 0) + 1, now_us)

    def _current(self, version: bytes, writers: bytes, now_us: int) -> int:
        """The version, or 0 while somebody writes; who did not come back in time is taken off."""
        live = self._data.writers[writers]
        late = [name for name, until in live.items() if until <= now_us // 1_000]
        for name in late:
            del live[name]
        if late or version not in self._data.versions:
            self._move(version, now_us)
        return 0 if live else self._data.versions[version]

    def _take(self, keys: list[bytes], arguments: list[bytes], now_us: int) -> list[int]:
        catalogue = self._current(CATALOGUE, CATALOGUE_WRITERS, now_us)
        keyring = self._current(KEYRING, KEYRING_WRITERS, now_us)
        per_minute, per_day, pardoned, cached_version, cached_until_ms, requests = _integers(arguments[0])
        if cached_version and (cached_version != keyring or now_us // 1_000 >= cached_until_ms):
            return [0, catalogue, keyring, now_us // 1_000]
        read_in, *records, pending = (*arguments[1:], b"", b"", b"", b"")[:4]
        data = self._data
        data.epoch = data.epoch or now_us
        used, ban = data.accounts.get(keys[0]), data.keys.get(keys[1])
        doubted = [key for key in keys[:2] if data.epochs.get(key) != data.epoch]
        if used is None or ban is None or (doubted and self.doubts):
            if read_in != b"%d" % data.epoch:
                return [1, data.epoch]
            if keys[0] in doubted:
                used = _later(used, AccountWindows.of(*_integers(records[0])))
            if keys[1] in doubted:
                ban = max(ban or BanState(), _record(records[1]), key=_order)
        assert used is not None
        assert ban is not None
        if self.torn:
            used, ban = copy.copy(used), copy.copy(ban)
            self._loop.call_later(2 * self._delays.one_way(), self._write, keys, used, ban)
        else:
            self._write(keys, used, ban)
        now_ms = now_us // 1_000
        if pending:
            _add_pending(used, AccountWindows.of(*_integers(pending)), now_ms)
        caller = Caller(0, 0, (per_minute, per_day), pardoned_at_ms=pardoned)
        tried = copy.copy(used), copy.copy(ban)
        first, *others = (decide(*tried, caller, self._policy, now_ms) for _ in range(requests))
        if requests > 1 and not others[-1].allowed and (not first.banned or first.ban_began):
            return [6]
        for _ in range(requests):
            decision = decide(used, ban, caller, self._policy, now_ms)
        outcome = 5 if decision.ban_began else _OUTCOMES[decision.allowed, decision.banned]
        if decision.banned:
            told: tuple[int, ...] = (ban.banned_from_ms, ban.banned_until_ms, ban.level, ban.pardoned_ms)
        else:
            told = used.numbers()
        return [outcome, catalogue, keyring, now_ms, *told]

    def _write(self, keys: list[bytes], used: AccountWindows, ban: BanState) -> None:
        data = self._data
        data.accounts[keys[0]], data.keys[keys[1]] = used, ban
        data.epochs[keys[0]] = data.epochs[keys[1]] = data.epoch


def _later(used: AccountWindows | None, stored: AccountWindows) -> AccountWindows:
    return stored if used is None else later_windows(used, stored)


def _order(ban: BanState) -> tuple[int, ...]:
    return ban.pardoned_ms, ban.banned_from_ms, ban.strikes_opened_ms, ban.strikes


def _add_pending(used: AccountWindows, pending: AccountWindows, now_ms: int) -> None:
    """Add pending counts whose windows are still open, as take.lua does."""
    if now_ms >= used.openings.until_ms:
        roll(used, now_ms)
    opened, counts = list(used.openings.opened_ms), list(used.used)
    for at, kind in enumerate(WINDOWS):
        its_opened_ms = min(pending.openings.opened_ms[at], now_ms - now_ms % kind.opens_ms)
        if now_ms - its_opened_ms < kind.length_ms:
            if counts[at] == 0:
                opened[at] = its_opened_ms
            counts[at] += pending.used[at]
    used.openings, used.used = openings(*opened), tuple(counts)
