"""What the reference page shows of the contract, and of documents that are written otherwise."""

from __future__ import annotations

import ast
import html
import json
import re
from typing import Any

import pytest

from petstore.api.openapi.document import OpenApiDocument
from petstore.site import reference
from petstore.site.calls import BASE
from petstore.site.reference import Operation, Reference
from petstore.site.samples import CLIENT_CALLS
from petstore.site.schemas import Contract

CONTRACT = OpenApiDocument([{"url": "/v1"}]).read()


@pytest.fixture(scope="module")
def shown() -> Reference:
    return reference.read(CONTRACT)


@pytest.fixture(scope="module")
def operations(shown: Reference) -> dict[str, Operation]:
    return {operation.name: operation for group in shown.groups for operation in group.operations}


class TestOperations:
    """Each operation as a section."""

    def test_what_is_said_in_a_place_of_its_own_is_said_once(self, operations: dict[str, Operation]) -> None:
        """The level of key and the codes have their own places, so no description repeats them."""
        for operation in operations.values():
            assert operation.level
            assert "Needs a key of level" not in operation.description
            assert not [
                refusal
                for refusal in operation.refusals + operation.shared
                if re.search("Codes?: ", refusal.when)
            ]

    def test_each_error_of_the_contract_is_in_the_table(self, operations: dict[str, Operation]) -> None:
        """Every status from 400 on has a row with its codes."""
        for item in CONTRACT["paths"].values():
            for node in item.values():
                statuses = {status for status in node["responses"] if status >= "400"}
                operation = operations[node["operationId"]]
                refusals = operation.refusals + operation.shared
                assert {refusal.status for refusal in refusals} == statuses
                assert all(refusal.codes for refusal in refusals)

    def test_a_header_of_all_answers_is_described_once(
        self, shown: Reference, operations: dict[str, Operation]
    ) -> None:
        """The headers of every answer are described once, in a section of their own; a list adds only its own
        headers, and those of its body where it has one."""
        always = {header.name for header in shown.always}
        assert {"X-RateLimit-Remaining", "X-Request-Id"} <= always
        whole, known = operations["listPets"].answers  # 200 and 304
        assert {header.name for header in known.headers} == {"ETag", "Link", "Vary"}
        assert {header.name for header in whole.headers} == {"ETag", "Link", "Vary", "Content-Encoding"}

    def test_an_error_of_many_operations_is_described_once(
        self, shown: Reference, operations: dict[str, Operation]
    ) -> None:
        """What pets and orders have in common stands in a section of its own, what is a pet's at the pet."""
        described = {code for refusal in shown.refusals for code in refusal.codes}
        assert {"unauthorized", "rate_limited", "payload_too_large"} <= described
        assert {refusal.status for refusal in operations["getPet"].refusals} == {"404", "410"}

    def test_bounds_and_examples_are_read_from_the_schema(self, operations: dict[str, Operation]) -> None:
        """A parameter shows its place, type, bounds and default; the widest integers are not spelled out."""
        rows = {row.name: row for row in operations["listPets"].parameters}
        assert (rows["limit"].location, rows["limit"].bounds, rows["limit"].default) == (
            "query",
            "1 to 100",
            "20",
        )
        assert rows["id"].type == "array of integer (int64)"
        assert rows["categoryId"].bounds == ""
        assert rows["status"].values == ["available", "pending", "sold"]
        assert rows["cursor"].addition
        assert not rows["limit"].addition

    def test_nested_members_follow_their_owner(self, operations: dict[str, Operation]) -> None:
        """The windows of a usage and the entries of its days have rows of their own."""
        answer, _ = operations["getUsage"].answers
        names = [row.name for row in answer.members]
        assert names.index("minute") < names.index("minute.used") < names.index("days[].requests")


class TestDocuments:
    """Other ways to write the same."""

    def test_references_are_followed_wherever_they_stand(self) -> None:
        """A reference to a reference, and a description beside one, are read as what they mean."""
        document = {
            "components": {"schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"type": "string"}}}
        }
        assert Contract(document).at({"$ref": "#/components/schemas/A", "description": "x"}) == {
            "type": "string",
            "description": "x",
        }

    def test_text_of_the_contract_is_no_html(self) -> None:
        """Markup in a description is shown as text."""
        document: dict[str, Any] = json.loads(json.dumps(CONTRACT))
        document["paths"]["/pets"]["get"]["description"] = "<script>alert(1)</script>"
        [first, *_] = reference.read(document).groups[0].operations
        assert "<script>" not in first.description


class TestSamples:
    """Code, before it is run."""

    def test_our_client_has_a_call_for_each_operation(self, operations: dict[str, Operation]) -> None:
        """A new operation needs its line in the table, and no line is left over."""
        assert CLIENT_CALLS.keys() == operations.keys()

    def test_it_can_be_pasted_and_read(self, operations: dict[str, Operation]) -> None:
        """Colours leave the reader's base address, which replaces text of the page, in one piece; the key
        comes from the environment. Lines have at most 88 characters, and Python parses."""
        for operation in operations.values():
            for sample in operation.samples:
                assert sample.text.count(BASE) == sample.code.count(BASE) == 1
                assert html.unescape(re.sub("<[^>]+>", "", sample.code)).strip() == sample.text.strip()
                assert "PETSTORE_KEY" in sample.text
                assert "pets_live" not in sample.text
                assert max(map(len, sample.text.splitlines())) <= 88, sample.text
                if sample.language in ("Python", "requests"):
                    ast.parse(sample.text)
