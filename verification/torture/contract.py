"""The contract: requests that Schemathesis makes of the document, along its links too, on either database.
Every answer is as the document says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import hypothesis
from hypothesis import HealthCheck, given
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from tests.support.fuzzing import Behind, Door, chain_of, config, schema_of, service_behind, speak_as_a_client
from tests.support.report import Report

# A round ends within about a minute; the next one has other requests.
_EXAMPLES = 40
_SETTINGS = hypothesis.settings(
    max_examples=_EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


def run(report: Report, seed: int, seconds: float) -> None:
    """Rounds of even seeds are on PostgreSQL with Valkey, the others on SQLite."""
    for number, folder in report.rounds_in_folders(seed, seconds):
        door = Door()
        schema = schema_of(config(_EXAMPLES, deterministic=False), door)
        backend = "sqlite" if number % 2 else "postgres+valkey"
        with service_behind(door, backend, folder) as behind:
            _play(report, schema, behind, number)


def _play(report: Report, schema: Any, behind: Behind, seed: int) -> None:
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            work = partial(_fuzz, report, operation, mode, behind, seed)
            _attempt(report, f"{operation.label}, {mode.value}", work)
    chain = hypothesis.seed(seed)(chain_of(schema, behind))
    settings = hypothesis.settings(_SETTINGS, max_examples=20, stateful_step_count=12)
    _attempt(report, "links", partial(chain.run, settings=settings))


def _attempt(report: Report, label: str, work: Callable[[], object]) -> None:
    try:
        work()
    except Unsatisfiable:
        pass  # an operation without parameters that could be violated
    except Exception as error:
        report.fault(f"{label}: {error}")


def _fuzz(report: Report, operation: Any, mode: GenerationMode, behind: Behind, seed: int) -> None:
    @hypothesis.seed(seed)
    @_SETTINGS
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        report.counts["requests"] += 1
        speak_as_a_client(case)
        case.call_and_validate(headers=behind.headers)

    check()
