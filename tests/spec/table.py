"""Every row and sentence of the specification, in its order and words, and the test that shows it.

What the specification calls "not shown" is a Gap: our answer has a test, and a row in
docs/specification-gaps.md, which is named by its first two columns.
"""

from __future__ import annotations

from typing import NamedTuple


class Sentence(NamedTuple):
    """What the specification says, and `module::Class::test` below tests/spec."""

    section: str
    words: str
    test: str


class Gap(NamedTuple):
    """What the specification leaves open, where docs/specification-gaps.md answers it, and the test."""

    section: str
    words: str
    documented: tuple[str, str]
    test: str


_SERVICE = "What the service does"
_RESOURCES = "Resources and their fields"
_LIST = "GET /pets"
_CREATE = "POST /pets"
_GET = "GET /pets/{petId}"

SENTENCES = (
    Sentence(
        _SERVICE,
        "The service is a pet store inventory service over HTTP with JSON bodies.",
        "test_service::TestService::test_http_with_json_bodies",
    ),
    Sentence(
        _SERVICE,
        "It manages animals (pets) offered by a store.",
        "test_service::TestService::test_manages_animals",
    ),
    Sentence(
        _SERVICE,
        "Clients list animals, optionally filtered by availability status.",
        "test_service::TestService::test_clients_list_animals",
    ),
    Sentence(_SERVICE, "Clients add a new animal.", "test_service::TestService::test_clients_add_an_animal"),
    Sentence(
        _SERVICE,
        "Clients read one animal by its identifier. This operation is deprecated.",
        "test_service::TestService::test_clients_read_one_animal",
    ),
    Sentence(_SERVICE, "Production | {base_url}", "test_service::TestEnvironments::test_production"),
    Sentence(_SERVICE, "Staging | {staging_base_url}", "test_service::TestEnvironments::test_staging"),
    Sentence(
        _SERVICE,
        "The base address ends with the version segment `/v1`.",
        "test_service::TestEnvironments::test_base_address_ends_with_v1",
    ),
    Sentence(
        _SERVICE,
        "All paths below are relative to it.",
        "test_service::TestEnvironments::test_paths_are_relative",
    ),
    Sentence(
        _SERVICE,
        "Request and response bodies are `application/json`.",
        "test_service::TestService::test_bodies_are_application_json",
    ),
    Sentence(
        _RESOURCES,
        "PetStatus: Allowed values: `available`, `pending`, `sold`.",
        "test_resources::TestPetStatus::test_allowed_values",
    ),
    Sentence(
        _RESOURCES,
        "name | string | yes | The animal's name",
        "test_resources::TestNewPet::test_name_is_required",
    ),
    Sentence(
        _RESOURCES,
        "categoryId | integer, format int64 | yes | Identifier of the category the animal belongs to",
        "test_resources::TestNewPet::test_category_is_a_required_int64",
    ),
    Sentence(
        _RESOURCES,
        "status | PetStatus | no | Availability status",
        "test_resources::TestNewPet::test_status_is_optional",
    ),
    Sentence(
        _RESOURCES, "Pet: All fields of NewPet, plus:", "test_resources::TestPet::test_all_fields_of_new_pet"
    ),
    Sentence(
        _RESOURCES,
        "id | integer, format int64 | yes | Unique identifier, assigned by the service on creation",
        "test_resources::TestPet::test_id_is_unique_and_assigned",
    ),
    Sentence(
        _RESOURCES,
        "The client never supplies `id`.",
        "test_resources::TestPet::test_the_client_never_supplies_id",
    ),
    Sentence(
        _RESOURCES, "Pets: A JSON array of Pet objects.", "test_resources::TestPets::test_array_of_pets"
    ),
    Sentence(
        _RESOURCES,
        "code | string | yes | Machine-readable error code",
        "test_resources::TestError::test_code_is_machine_readable",
    ),
    Sentence(
        _RESOURCES,
        "message | string | yes | Human-readable description",
        "test_resources::TestError::test_message_is_human_readable",
    ),
    Sentence(
        _RESOURCES,
        "status | integer | yes | The HTTP status code",
        "test_resources::TestError::test_status_is_the_http_status",
    ),
    Sentence(
        "States and transitions",
        "The availability status of an animal takes one of three states: `available`, `pending`, `sold`.",
        "test_resources::TestStates::test_three_states",
    ),
    Sentence(
        "Endpoints",
        "Every endpoint requires the bearer credential described under Authentication.",
        "test_authentication::TestBearer::test_every_endpoint_requires_it",
    ),
    Sentence(
        _LIST,
        "Returns a paginated list of animals.",
        "test_endpoints::TestListPets::test_returns_a_paginated_list",
    ),
    Sentence(
        _LIST,
        "limit | integer | no | Minimum 1, maximum 100, default 20. Maximum number of animals returned",
        "test_endpoints::TestListPets::test_limit",
    ),
    Sentence(
        _LIST,
        "status | PetStatus | no | Returns only animals with that availability status",
        "test_endpoints::TestListPets::test_status",
    ),
    Sentence(_LIST, "200 | Pets (array of Pet)", "test_endpoints::TestListPets::test_200"),
    Sentence(_LIST, "401 | Error", "test_endpoints::TestListPets::test_401"),
    Sentence(_CREATE, "Adds an animal.", "test_endpoints::TestCreatePet::test_adds_an_animal"),
    Sentence(
        _CREATE,
        "The request body is required and has the shape NewPet; `name` and `categoryId` are required.",
        "test_endpoints::TestCreatePet::test_body_is_required",
    ),
    Sentence(
        _CREATE,
        "201 | Pet (the created animal, including the assigned id)",
        "test_endpoints::TestCreatePet::test_201",
    ),
    Sentence(
        _CREATE,
        "400 | Error. Returned when the body lacks required fields or has invalid values",
        "test_endpoints::TestCreatePet::test_400",
    ),
    Sentence(_CREATE, "401 | Error", "test_endpoints::TestCreatePet::test_401"),
    Sentence(_GET, "Returns one animal.", "test_endpoints::TestGetPet::test_returns_one_animal"),
    Sentence(
        _GET, "petId | integer, format int64 | yes", "test_endpoints::TestGetPet::test_pet_id_is_an_int64"
    ),
    Sentence(_GET, "200 | Pet", "test_endpoints::TestGetPet::test_200"),
    Sentence(_GET, "401 | Error", "test_endpoints::TestGetPet::test_401"),
    Sentence(
        _GET,
        "404 | Error. Returned when the animal does not exist",
        "test_endpoints::TestGetPet::test_404",
    ),
    Sentence(
        _GET,
        "This operation is deprecated and is to be removed on 5 December 2030.",
        "test_versioning::TestDeprecation::test_deprecated_and_to_be_removed",
    ),
    Sentence(
        _GET,
        "The replacement is GET /pets with the status filter.",
        "test_versioning::TestDeprecation::test_the_replacement",
    ),
    Sentence(
        "Authentication",
        "Scheme: HTTP bearer. The API key is sent as a bearer token in the `Authorization` header, in the"
        " form `Authorization: Bearer <API_KEY>`.",
        "test_authentication::TestBearer::test_form",
    ),
    Sentence(
        "Authentication",
        "The scheme applies to every endpoint.",
        "test_authentication::TestBearer::test_applies_to_every_endpoint",
    ),
    Sentence(
        "Authentication",
        "A missing or invalid key yields 401 with an Error body.",
        "test_authentication::TestBearer::test_missing_or_invalid_yields_401",
    ),
    Sentence(
        "Errors",
        "Errors use the Error shape (code, message, status) unless noted.",
        "test_errors::TestErrors::test_errors_use_the_error_shape",
    ),
    Sentence(
        "Errors",
        "400 | Body of POST /pets lacks required fields or has invalid values | Error",
        "test_errors::TestErrors::test_400",
    ),
    Sentence("Errors", "401 | API key missing or invalid | Error", "test_errors::TestErrors::test_401"),
    Sentence(
        "Errors", "404 | Animal not found (GET /pets/{petId}) | Error", "test_errors::TestErrors::test_404"
    ),
    Sentence("Errors", "429 | Rate limit exceeded | see Limits", "test_errors::TestErrors::test_429"),
    Sentence(
        "Limits",
        "limit parameter of GET /pets | 1 to 100, default 20",
        "test_limits::TestItems::test_limit_parameter",
    ),
    Sentence("Limits", "Free | 60 | 1,000", "test_limits::TestPlans::test_free"),
    Sentence("Limits", "Pro | 300 | 10,000", "test_limits::TestPlans::test_pro"),
    Sentence("Limits", "Business | 1,000 | 100,000", "test_limits::TestPlans::test_business"),
    Sentence("Limits", "Enterprise | Custom | Custom", "test_limits::TestPlans::test_enterprise"),
    Sentence(
        "Limits",
        "1. Every API response carries the headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and"
        " `X-RateLimit-Reset`.",
        "test_limits::TestRules::test_1_every_response_carries_the_headers",
    ),
    Sentence(
        "Limits",
        "2. `X-RateLimit-Reset` is a Unix timestamp of the moment the limit resets.",
        "test_limits::TestRules::test_2_reset_is_the_moment",
    ),
    Sentence(
        "Limits",
        "3. When a request exceeds the limit, the response is 429 Too Many Requests, and the `Retry-After`"
        " header gives the time after which to retry.",
        "test_limits::TestRules::test_3_exceeding_is_429_with_retry_after",
    ),
    Sentence(
        "Limits",
        "4. Clients are to back off exponentially.",
        "test_limits::TestRules::test_4_clients_that_back_off_are_served",
    ),
    Sentence(
        "Limits",
        "4. Repeated requests after a 429 may cause a temporary ban of the API key.",
        "test_limits::TestRules::test_4_repeated_requests_cause_a_temporary_ban",
    ),
    Sentence(
        "Limits",
        "5. Higher limits come with a plan upgrade;",
        "test_limits::TestRules::test_5_higher_limits_come_with_a_plan_upgrade",
    ),
    Sentence(
        "Limits",
        "5. Enterprise quotas are agreed individually.",
        "test_limits::TestRules::test_5_enterprise_quotas_are_agreed_individually",
    ),
    Sentence(
        "Versioning",
        "The interface version is 1.0.0 and the version segment `/v1` is part of the base address.",
        "test_versioning::TestVersion::test_interface_version",
    ),
    Sentence(
        "Versioning",
        "GET /pets/{petId} is deprecated, with removal on 5 December 2030.",
        "test_versioning::TestDeprecation::test_removal_on_5_december_2030",
    ),
)

GAPS = (
    Gap(
        _RESOURCES,
        "Category record: not shown beyond its identifier being referenced by categoryId.",
        ("NewPet", "Category record"),
        "test_gaps::TestGaps::test_category_record",
    ),
    Gap(
        _RESOURCES,
        "Default of status when omitted: not shown.",
        ("NewPet", "Default of `status`"),
        "test_gaps::TestGaps::test_default_of_status",
    ),
    Gap(
        "States and transitions",
        "Transitions: not shown.",
        ("States", "Transitions"),
        "test_gaps::TestGaps::test_transitions",
    ),
    Gap(
        _LIST,
        "Page navigation parameters other than limit, and any response fields that carry page position: not"
        " shown.",
        ("GET /pets", "Page navigation"),
        "test_gaps::TestGaps::test_page_navigation",
    ),
    Gap(
        _LIST,
        "Ordering of results: not shown.",
        ("GET /pets", "Ordering of results"),
        "test_gaps::TestGaps::test_ordering",
    ),
    Gap(
        "Endpoints",
        "Other operations: an order listing at GET /store/orders is referred to, but its shape is not shown,"
        " and no other operations are shown.",
        ("Endpoints", "`GET /store/orders` and other operations"),
        "test_gaps::TestGaps::test_other_operations",
    ),
    Gap(
        "Authentication",
        "How keys are issued or revoked: not shown.",
        ("Authentication", "How keys are issued or revoked"),
        "test_gaps::TestGaps::test_keys_are_issued_and_revoked_by_the_operator",
    ),
    Gap(
        "Events",
        "Events, webhooks and notifications: not shown.",
        ("Events", "Events, webhooks, notifications"),
        "test_gaps::TestGaps::test_there_are_no_events",
    ),
    Gap(
        "Errors",
        "Specific values of the `code` field: not shown.",
        ("Errors", "Values of `code`"),
        "test_gaps::TestGaps::test_values_of_code",
    ),
    Gap(
        "Errors",
        "Body of a 429 response: not shown.",
        ("Errors", "Body of a 429"),
        "test_gaps::TestGaps::test_body_of_a_429",
    ),
    Gap(
        "Versioning",
        "Policy for future versions and for compatibility: not shown.",
        ("Versioning", "Policy for future versions and for compatibility"),
        "test_gaps::TestGaps::test_policy_of_compatibility",
    ),
)
