"""Schemathesis against our own document, in process, with all of its checks: examples, edges, fuzzing, links.

The same requests on every run (derandomised); `make torture ARGS='contract'` makes others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import schemathesis
from hypothesis import settings

from tests.support.fuzzing import (
    Behind,
    Door,
    chain_of,
    config,
    names_of,
    schema_of,
    service_behind,
    speak_as_a_client,
)

# Only here, since it takes half a second to import: `make test-fast` leaves this file out.
pytest_plugins = ["schemathesis.pytest.plugin"]
pytestmark = pytest.mark.slow

DOOR = Door()
schema = schema_of(config(25, deterministic=True), DOOR)


@pytest.fixture(scope="module", params=["sqlite", "postgres+valkey"])
def behind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    """The service behind the document."""
    with service_behind(DOOR, request.param, tmp_path_factory.mktemp("schemathesis")) as opened:
        yield opened


def _test_of(name: str) -> Callable[..., None]:
    @schema.include(operation_id=name).parametrize()  # type: ignore[untyped-decorator]
    def test(case: schemathesis.Case, behind: Behind) -> None:
        """Whatever is generated, by the document or against it, is answered as the document says."""
        speak_as_a_client(case)
        case.call_and_validate(headers=behind.headers)

    tested: Callable[..., None] = test
    return tested


# One test for each operation: parametrised ones share a name, and parallel runs would skip some of them.
globals().update({f"test_{name}": _test_of(name) for name in names_of(schema)})


def test_links(behind: Behind) -> None:
    """Chains of requests along the document's links: what was created can be read, changed and removed."""
    chain_of(schema, behind).run(
        settings=settings(
            max_examples=10, stateful_step_count=8, derandomize=True, database=None, deadline=None
        )
    )
