"""The specification's rows and sentences, in its order and words; indented below each the
tests that hold it.

A test is named by its place below tests/. What the specification calls "not shown" is a gap: its `gap:` line
names the line of docs/specification-gaps.md that answers it.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One row or sentence of the specification."""

    section: str
    words: str
    tests: list[str]
    gap: tuple[str, str] | None
    """What docs/specification-gaps.md has in bold: the section, and the open point."""


_TEXT = """
# What the service does
The service is a pet store inventory service over HTTP with JSON bodies.
    e2e/test_start.py::TestFirstStart::test_it_prints_a_key_once_and_the_second_start_prints_none
It manages animals (pets) offered by a store.
    storage/contract/test_pets.py::TestModel::test_the_store_answers_as_a_dictionary_would
Clients list animals, optionally filtered by availability status.
    api/test_list_pets.py::TestListPets200::test_a_status_filter_lists_only_animals_of_that_status
Clients add a new animal.
    api/test_create_pet.py::TestCreatePet201::test_the_answer_is_the_animal_with_its_identifier
Clients read one animal by its identifier. This operation is deprecated.
    api/test_get_pet.py::TestGetPet200::test_an_animal_is_answered_with_the_same_bytes_as_in_the_201
Production | {base_url}
    api/test_stages.py::test_the_contract_has_both_addresses
Staging | {staging_base_url}
    api/test_stages.py::test_the_contract_has_both_addresses
    api/test_stages.py::test_a_key_of_the_other_stage
    e2e/test_stages.py::TestBoth::test_nothing_that_is_made_at_one_is_seen_at_the_other
The base address ends with the version segment `/v1`.
    core/test_config.py::TestTable::test_a_value_that_is_not
All paths below are relative to it.
    api/test_methods.py::test_outside_the_interface
Request and response bodies are `application/json`.
    api/test_refusals.py::test_each_refusal_is_as_its_row_says

# Resources and their fields
PetStatus: Allowed values: `available`, `pending`, `sold`.
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
name | string | yes | The animal's name
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
categoryId | integer, format int64 | yes | Identifier of the category the animal belongs to
    api/test_create_pet.py::TestCreatePet201::test_category_comes_back_digit_for_digit
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
status | PetStatus | no | Availability status
    api/test_list_pets.py::TestListPets200::test_a_status_filter_lists_only_animals_of_that_status
Category record: not shown beyond its identifier being referenced by categoryId.
    gap: NewPet | Category record
    api/test_create_pet.py::TestCreatePet201::test_category_comes_back_digit_for_digit
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
Default of status when omitted: not shown.
    gap: NewPet | Default of `status`
    api/test_create_pet.py::TestCreatePet201::test_the_answer_is_the_animal_with_its_identifier
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
Pet: All fields of NewPet, plus:
    core/test_pets.py::test_a_pet_has_the_specifications_members
id | integer, format int64 | yes | Unique identifier, assigned by the service on creation
    storage/contract/test_pets.py::TestAdd::test_parallel_additions_are_all_kept_under_ids_of_their_own
The client never supplies `id`.
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
Pets: A JSON array of Pet objects.
    api/test_list_pets.py::TestListPets200::test_id_reads_one_animal
code | string | yes | Machine-readable error code
    api/test_document.py::TestErrors::test_codes_stand_at_their_status
message | string | yes | Human-readable description
    core/test_errors.py::test_the_body_has_exactly_three_members
status | integer | yes | The HTTP status code
    core/test_errors.py::test_the_body_has_exactly_three_members

# States and transitions
The availability status of an animal takes one of three states: `available`, `pending`, `sold`.
    api/test_document.py::TestNumbers::test_schemas_have_the_bounds_of_the_code
Transitions: not shown.
    gap: States | Transitions
    storage/contract/test_pet_changes.py::TestChange::test_every_pair_of_states_follows_the_table

# Endpoints
Every endpoint requires the bearer credential described under Authentication.
    api/test_refusals.py::test_each_refusal_is_as_its_row_says

# GET /pets
Returns a paginated list of animals.
    api/test_paging.py::TestWalk200::test_a_walk_has_every_animal_exactly_once
limit | integer | no | Minimum 1, maximum 100, default 20. Maximum number of animals returned
    api/test_paging.py::TestWalk200::test_a_walk_has_every_animal_exactly_once
    api/test_list_pets.py::TestListPets200::test_twenty_by_default_in_ascending_order
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
status | PetStatus | no | Returns only animals with that availability status
    api/test_list_pets.py::TestListPets200::test_a_status_filter_lists_only_animals_of_that_status
200 | Pets (array of Pet)
    api/test_list_pets.py::TestListPets200::test_id_reads_one_animal
401 | Error
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
Page navigation parameters other than limit, and any response fields that carry page position: not shown.
    gap: GET /pets | Page navigation
    api/test_paging.py::TestWalk200::test_next_keeps_every_filter
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
Ordering of results: not shown.
    gap: GET /pets | Ordering of results
    api/test_paging.py::TestWalk200::test_a_walk_has_every_animal_exactly_once
    api/test_list_pets.py::TestListPets200::test_id_reads_a_batch_in_ascending_order

# POST /pets
Adds an animal.
    api/test_create_pet.py::TestCreatePet201::test_the_answer_is_the_animal_with_its_identifier
The request body is required and has the shape NewPet; `name` and `categoryId` are required.
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
201 | Pet (the created animal, including the assigned id)
    api/test_create_pet.py::TestCreatePet201::test_the_answer_is_the_animal_with_its_identifier
400 | Error. Returned when the body lacks required fields or has invalid values
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
401 | Error
    api/test_refusals.py::test_each_refusal_is_as_its_row_says

# GET /pets/{petId}
Returns one animal.
    api/test_get_pet.py::TestGetPet200::test_an_animal_is_answered_with_the_same_bytes_as_in_the_201
petId | integer, format int64 | yes
    api/test_get_pet.py::TestGetPet404::test_an_unknown_id_is_404_and_names_its_successor
200 | Pet
    api/test_get_pet.py::TestGetPet200::test_an_animal_is_answered_with_the_same_bytes_as_in_the_201
401 | Error
    api/test_get_pet.py::TestDeprecationKit::test_refusals_have_the_headers_of_the_deprecation
404 | Error. Returned when the animal does not exist
    api/test_get_pet.py::TestGetPet404::test_an_unknown_id_is_404_and_names_its_successor
This operation is deprecated and is to be removed on 5 December 2030.
    api/test_document.py::TestNumbers::test_dates_of_deprecation_and_removal_are_those_of_the_code
The replacement is GET /pets with the status filter.
    api/test_list_pets.py::TestListPets200::test_a_status_filter_lists_only_animals_of_that_status
    api/test_list_pets.py::TestListPets200::test_id_reads_one_animal

# Endpoints
Other operations: an order listing at GET /store/orders is referred to, but its shape is not shown,
  and no other operations are shown.
    gap: Endpoints | `GET /store/orders` and other operations
    api/test_orders.py::TestListOrders200::test_the_body_is_a_bare_array_of_the_accounts_orders
    api/test_document.py::TestRouter::test_paths_methods_operations_and_deprecation

# Authentication
Scheme: HTTP bearer. The API key is sent as a bearer token in the `Authorization` header, in the form
  `Authorization: Bearer <API_KEY>`.
    api/test_authentication.py::test_the_scheme_is_case_insensitive
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
The scheme applies to every endpoint.
    api/test_document.py::TestRouter::test_one_scheme_for_every_operation
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
A missing or invalid key yields 401 with an Error body.
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
How keys are issued or revoked: not shown.
    gap: Authentication | How keys are issued or revoked
    api/test_authentication.py::TestKeyLife::test_an_expired_key_is_refused_from_its_moment_on
    api/test_authentication.py::TestKeyLife::test_a_revoked_key_is_refused_from_the_next_request_on

# Events
Events, webhooks and notifications: not shown.
    gap: Events | Events, webhooks, notifications
    api/test_document.py::TestRouter::test_what_is_sent
    storage/contract/test_events.py::test_a_mirror_that_follows_shows_what_the_store_shows

# Errors
Errors use the Error shape (code, message, status) unless noted.
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
400 | Body of POST /pets lacks required fields or has invalid values | Error
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
401 | API key missing or invalid | Error
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
404 | Animal not found (GET /pets/{petId}) | Error
    api/test_get_pet.py::TestGetPet404::test_an_unknown_id_is_404_and_names_its_successor
429 | Rate limit exceeded | see Limits
    api/test_limits.py::TestTooMany429::test_a_request_past_the_minute_is_refused_until_the_reset
Specific values of the `code` field: not shown.
    gap: Errors | Values of `code`
    api/test_document.py::TestErrors::test_the_list_of_codes
    docs/test_errors.py::test_each_code_has_an_entry
Body of a 429 response: not shown.
    gap: Errors | Body of a 429
    api/test_limits.py::TestTooMany429::test_a_request_past_the_minute_is_refused_until_the_reset
    api/test_bans.py::TestBegin::test_after_more_than_sixty_counted

# Limits
limit parameter of GET /pets | 1 to 100, default 20
    api/test_document.py::TestNumbers::test_schemas_have_the_bounds_of_the_code
Free | 60 | 1,000
    core/test_plans.py::test_a_standard_plan_has_the_published_numbers
    api/test_limits.py::test_each_plan_has_its_limits_in_both_forms_of_headers
Pro | 300 | 10,000
    core/test_plans.py::test_a_standard_plan_has_the_published_numbers
Business | 1,000 | 100,000
    core/test_plans.py::test_a_standard_plan_has_the_published_numbers
Enterprise | Custom | Custom
    api/test_limits.py::test_each_plan_has_its_limits_in_both_forms_of_headers
1. Every API response carries the headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and
  `X-RateLimit-Reset`.
    api/test_refusals.py::test_each_refusal_is_as_its_row_says
    api/test_document.py::TestHeaders::test_of_each_response
2. `X-RateLimit-Reset` is a Unix timestamp of the moment the limit resets.
    api/test_limits.py::TestTooMany429::test_a_request_past_the_minute_is_refused_until_the_reset
3. When a request exceeds the limit, the response is 429 Too Many Requests, and the `Retry-After` header
  gives the time after which to retry.
    core/test_quota.py::TestTables::test_retry_after_is_the_seconds_to_the_reset_rounded_up
    api/test_limits.py::TestTooMany429::test_a_request_past_the_minute_is_refused_until_the_reset
4. Clients are to back off exponentially.
    api/test_bans.py::TestBegin::test_a_client_that_backs_off_is_served
4. Repeated requests after a 429 may cause a temporary ban of the API key.
    api/test_bans.py::TestBegin::test_after_more_than_sixty_counted
    core/test_bans.py::test_each_ban_is_a_step_longer_and_the_last_step_repeats
5. Higher limits come with a plan upgrade;
    api/test_limits.py::test_an_upgrade_acts_at_once
5. Enterprise quotas are agreed individually.
    core/test_plans.py::test_a_refusal_says_what_to_do

# Versioning
The interface version is 1.0.0 and the version segment `/v1` is part of the base address.
    api/test_document.py::TestValid::test_the_version_is_that_of_the_interface
    api/test_methods.py::test_outside_the_interface
GET /pets/{petId} is deprecated, with removal on 5 December 2030.
    api/test_get_pet.py::TestGetPet410::test_at_the_moment_it_is_gone
Policy for future versions and for compatibility: not shown.
    gap: Versioning | Policy for future versions and for compatibility
    api/test_document.py::TestNumbers::test_the_policy_stands_where_clients_read
"""


def _rows() -> list[Row]:
    """The text above, row by row."""
    rows: list[Row] = []
    section = ""
    for line in filter(None, _TEXT.splitlines()):
        if line.startswith("# "):
            section = line[2:]
        elif not line.startswith(" "):
            rows.append(Row(section, line, [], None))
        elif not line.startswith("    "):
            rows[-1] = rows[-1]._replace(words=f"{rows[-1].words} {line.strip()}")
        elif line.startswith("    gap: "):
            first, second = line[9:].split(" | ")
            rows[-1] = rows[-1]._replace(gap=(first, second))
        else:
            rows[-1].tests.append(line.strip())
    return rows


ROWS = _rows()
