"""Schemathesis against our own document, in process, with all of its checks: examples, edges, fuzzing, links.

The same requests on every run (derandomised); `make torture ARGS='contract'` makes others, of both databases.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.support import contract

# Schemathesis is imported where it runs, and makes the cases of an operation there: both take seconds, and
# each worker collects this file.
pytestmark = pytest.mark.slow
OPERATIONS = [
    operation["operationId"]
    for methods in contract.document()["paths"].values()
    for operation in methods.values()
    if "operationId" in operation
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """The document, and the service behind it on the stricter database."""
    from tests.support import fuzzing

    door = fuzzing.Door()
    schema = fuzzing.schema_of(fuzzing.config(6, deterministic=True), door)
    with fuzzing.service_behind(door, "postgres+valkey", tmp_path_factory.mktemp("schemathesis")) as behind:
        yield schema, behind


@pytest.mark.parametrize("name", OPERATIONS)
def test_generated_requests_are_answered_as_the_document_says(opened: tuple[Any, Any], name: str) -> None:
    """Whatever is generated, by the document or against it, is answered as the document says."""
    from tests.support.fuzzing import try_all

    try_all(*opened, name)


def test_links_of_the_document_can_be_followed(tmp_path: Path) -> None:
    """Chains of requests along the document's links: what was created can be read, changed and removed."""
    from tests.support import fuzzing

    door = fuzzing.Door()
    schema = fuzzing.schema_of(fuzzing.config(6, deterministic=True), door)
    with fuzzing.service_behind(door, "sqlite", tmp_path) as behind:
        fuzzing.chain_of(schema, behind).run(
            settings=hypothesis.settings(
                max_examples=6, stateful_step_count=8, derandomize=True, database=None, deadline=None
            )
        )
