# Made from _async/runner.py by `python -m tools.sync_client`.
"""Carries out calls: sends them, waits between their tries, follows the pages of a walk."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import TypeVar

import httpx2

from petstore_client.answers import Answer, Fault, Page
from petstore_client.calls import Call
from petstore_client.connection import ANSWER_MAX_BYTES, Connection, answer_of, watch
from petstore_client.policy import CallRun, Outcome, Send, Steps
from petstore_client.pool import Pool
from petstore_client.waiters import Waiter

_T = TypeVar("_T")


class Runner:
    """The driver of policy.py: the service as a client knows it, and its connections."""

    def __init__(self, connection: Connection, pool: Pool, answers: deque[Answer] | None = None) -> None:
        self.connection = connection
        self.pool = pool
        self.answers = answers  # successful ones, for with_response

    def run(self, call: Call[_T], waiter: Waiter | None = None) -> _T:
        """The result of a call, or its error. `waiter` ends it from outside."""
        connection = self.connection
        waiter = waiter or Waiter()
        run = CallRun(call, connection.options, connection.limiter, connection.runtime, waiter)
        try:
            with connection.runtime.call():
                answer = self._carry_out(run.steps(), call, waiter)
        finally:
            run.warn(stacklevel=3)  # the line of the program that called a method of the client
        if self.answers is not None:
            self.answers.append(answer)
        return run.result(answer)

    def walk(self, call: Call[Page[_T]] | None) -> Generator[_T]:
        """The items of all pages."""
        while call is not None:
            page = self.run(call)
            for item in page.items:
                yield item
            call = call.after(page)

    def _carry_out(self, steps: Steps, call: Call[_T], waiter: Waiter) -> Answer:
        connection = self.connection
        outcome: Outcome = None
        try:
            while True:
                waiter.check()
                with connection.limiter.lock:
                    step = steps.send(outcome)
                if isinstance(step, Send):
                    connection.log(call, step)
                    outcome = self._send(call, step, waiter)
                else:
                    connection.runtime.wait(waiter.event, step.seconds)
                    waiter.event.clear()
                    outcome = None
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        finally:
            with connection.limiter.lock:
                steps.close()

    def _send(self, call: Call[_T], step: Send, waiter: Waiter) -> Answer | Fault:
        content = bytearray()
        request = self.connection.request(call, step, watch, waiter.reading)
        with self.pool.lease() as http:
            try:
                with http.stream(**request) as response:
                    for piece in response.iter_bytes():
                        content += piece
                        if len(content) > ANSWER_MAX_BYTES:
                            break
                    return answer_of(response, content)
            except httpx2.RequestError as error:
                return self.connection.fault(error, call)
