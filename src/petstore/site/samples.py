"""Code for each operation: curl, Python with our client, Python with requests, JavaScript with fetch."""

from __future__ import annotations

import json
import re
import shlex
from textwrap import indent
from typing import Any

import msgspec
from markupsafe import Markup

from petstore.site.calls import BASE, IDEMPOTENCY_KEY, Call
from petstore.site.documents import highlight

# How our client spells each operation; `{}` takes the arguments.
CLIENT_CALLS = {
    "listPets": "client.pets.list({})",
    "createPet": "client.pets.create({})",
    "getPet": "client.pets.get_by_path({})",
    "updatePet": "client.pets.update({})",
    "deletePet": "client.pets.delete({})",
    "listCategories": "client.categories.list({})",
    "listOrders": "client.orders.list({})",
    "placeOrder": "client.orders.place({})",
    "updateOrder": "client.orders.update({})",
    "cancelOrder": "client.orders.cancel({})",
    "getUsage": "client.usage({})",
    "listEvents": "client.events.list({})",
    "listWebhooks": "client.webhooks.list({})",
    "createWebhook": "client.webhooks.create({})",
    "getWebhook": "client.webhooks.get({})",
    "updateWebhook": "client.webhooks.update({})",
    "deleteWebhook": "client.webhooks.delete({})",
    "rotateWebhookSecret": "client.webhooks.rotate_secret({})",
    "testWebhook": "client.webhooks.test({})",
    "listDeliveries": "client.webhooks.deliveries({})",
    "redeliver": "client.webhooks.redeliver({})",
    "rehearseEvent": "client.webhooks.rehearse({})",
}
_REMARKS = {
    "getPet": "# Deprecated, and warns so: client.pets.get(...) is the replacement.",
    "listEvents": "# client.events.follow(...) goes on for ever.",
}
# `Link` of these leads on always: a walk would not end.
_ENDLESS = ("listEvents",)
_LINE = 88  # characters, so that a sample seldom scrolls sideways
_NEW_KEY = "A new key for each {noun}, the same one when you try again."


class Sample(msgspec.Struct, frozen=True):
    """`language` is its label in the guide too, `code` is `text` coloured."""

    language: str
    text: str
    code: Markup


def samples(call: Call) -> list[Sample]:
    """The four samples of an operation."""
    return [
        Sample(language, text, Markup(highlight(text, lexer)))
        for language, lexer, text in (
            ("curl", "sh", _curl(call)),
            ("Python", "python", _client(call)),
            ("requests", "python", _requests(call)),
            ("JavaScript", "javascript", _fetch(call)),
        )
    ]


def _curl(call: Call) -> str:
    parts = [
        "curl --fail-with-body" + (f" --request {call.method}" if call.method != "GET" else ""),
        f'"{call.address_with_query}"',
        '--header "Authorization: Bearer $PETSTORE_KEY"',
    ]
    if call.idempotency_key:
        parts.append(f'--header "{IDEMPOTENCY_KEY}: {call.idempotency_key}"')
    if call.body is not None:
        parts.append('--header "Content-Type: application/json"')
        parts.append(f"--data {shlex.quote(json.dumps(call.body, ensure_ascii=False))}")
    if call.is_paged:
        parts.append("--include")
    remarks = [f"# {_NEW_KEY.format(noun=call.noun)}\n"] if call.idempotency_key else []
    further = "events to come" if call.operation in _ENDLESS else "next page"
    remarks += [f"# The header Link leads to the {further}.\n"] if call.is_paged else []
    return "".join(remarks) + " \\\n  ".join(parts)


def _client(call: Call) -> str:
    named = {**call.query, **(call.body or {})}
    arguments = [_literal(value) for value in call.in_path.values()]
    arguments += [f"{_snake(name)}={_literal(value)}" for name, value in named.items()]
    asked = CLIENT_CALLS[call.operation].format(", ".join(arguments))
    if call.is_list:
        body = f"for {call.noun} in {asked}:\n    print({call.noun})"
    elif call.noun:
        body = f"{call.noun} = {asked}\nprint({call.noun})"
    else:
        body = asked
    if call.operation in _REMARKS:
        body = f"{_REMARKS[call.operation]}\n{body}"
    errors = [_error_class(code) for code in call.codes]
    if errors:
        caught = errors[0] if len(errors) == 1 else f"({', '.join(errors)})"
        body = f"try:\n{indent(body, '    ')}\nexcept {caught} as error:\n    print(error.message)"
    return (
        f"import os\n\nfrom petstore_client import {', '.join(sorted(['Petstore', *errors]))}\n\n"
        f'with Petstore("{BASE}", os.environ["PETSTORE_KEY"]) as client:\n{indent(body, "    ")}'
    )


def _requests(call: Call) -> str:
    if call.is_paged and call.operation not in _ENDLESS:
        return _requests_walk(call)
    arguments = [f'"{call.address}"']
    if call.query:
        arguments.append(f"params={_python(call.query)}")
    if call.body is not None:
        arguments.append(f"json={_python(call.body)}")
    key = '"Authorization": f"Bearer {os.environ[\'PETSTORE_KEY\']}"'
    if call.idempotency_key:
        remark = f"# {_NEW_KEY.format(noun=call.noun)}"
        idempotency = f'{remark}\n"{IDEMPOTENCY_KEY}": str(uuid.uuid4()),'
        arguments.append(f"headers={{\n{indent(f'{key},{chr(10)}{idempotency}', '    ')}\n}}")
    else:
        arguments.append(f"headers={{{key}}}")
    arguments.append("timeout=30")
    imports = "import os\nimport uuid\n" if call.idempotency_key else "import os\n"
    asked = indent(",\n".join(arguments), "    ")
    lines = f"{imports}\nimport requests\n\nresponse = requests.{call.method.lower()}(\n{asked},\n)\n"
    lines += _REQUESTS_CHECK
    if call.is_list:
        return f"{lines}for {call.noun} in response.json():\n    print({call.noun})"
    return f"{lines}{call.noun} = response.json()\nprint({call.noun})" if call.noun else lines.rstrip()


_REQUESTS_CHECK = """\
if not response.ok:
    error = response.json()
    raise RuntimeError(f"{error['code']}: {error['message']}")
"""


def _requests_walk(call: Call) -> str:
    return f"""\
import os
from urllib.parse import urljoin

import requests

session = requests.Session()
session.headers["Authorization"] = f"Bearer {{os.environ['PETSTORE_KEY']}}"

address = "{call.address_with_query}"
while address:
    response = session.get(address, timeout=30)
{indent(_REQUESTS_CHECK, "    ").rstrip()}
    for {call.noun} in response.json():
        print({call.noun})
    # The reference may be relative: it is resolved against the address of this page.
    following = response.links.get("next")
    address = urljoin(response.url, following["url"]) if following else None"""


def _fetch(call: Call) -> str:
    key = "Authorization: `Bearer ${process.env.PETSTORE_KEY}`"
    if call.is_paged and call.operation not in _ENDLESS:
        return _fetch_walk(call, key)
    headers = [key]
    if call.body is not None:
        headers.append('"Content-Type": "application/json"')
    if call.idempotency_key:
        headers.append(f'// {_NEW_KEY.format(noun=call.noun)}\n"{IDEMPOTENCY_KEY}": crypto.randomUUID()')
    together = ",\n".join(headers)
    options = [f'method: "{call.method}"'] if call.method != "GET" else []
    options.append(
        f"headers: {{ {key} }}" if headers == [key] else f"headers: {{\n{indent(together, '  ')},\n}}"
    )
    if call.body is not None:
        options.append(f"body: JSON.stringify({_javascript(call.body)})")
    options.append("signal: AbortSignal.timeout(30_000)")
    asked = indent(",\n".join(options), "  ")
    begun = f'const response = await fetch("{call.address_with_query}", {{'
    if len(begun) > _LINE:
        begun = f'const address = "{call.address_with_query}";\nconst response = await fetch(address, {{'
    lines = f"{begun}\n{asked},\n}});\n{_FETCH_CHECK}"
    if call.is_list:
        return f"{lines}for (const {call.noun} of await response.json()) {{\n  console.log({call.noun});\n}}"
    return (
        f"{lines}const {call.noun} = await response.json();\nconsole.log({call.noun});"
        if call.noun
        else lines.rstrip()
    )


_FETCH_CHECK = """\
if (!response.ok) {
  const { code, message } = await response.json();
  throw new Error(`${code}: ${message}`);
}
"""


def _fetch_walk(call: Call, key: str) -> str:
    return f"""\
let address = "{call.address_with_query}";
while (address) {{
  const response = await fetch(address, {{
    headers: {{ {key} }},
    signal: AbortSignal.timeout(30_000),
  }});
{indent(_FETCH_CHECK, "  ").rstrip()}
  for (const {call.noun} of await response.json()) {{
    console.log({call.noun});
  }}
  // The reference may be relative: it is resolved against the address of this page.
  const next = response.headers.get("link")?.match(/<([^>]+)>; rel="next"/)?.[1];
  address = next && new URL(next, response.url);
}}"""


def _python(values: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {_literal(value)}" for name, value in values.items()) + "}"


def _literal(value: Any) -> str:
    """A text, an array of texts or a number in Python, text in double quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | list) else repr(value)


def _javascript(values: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{name}: {json.dumps(value)}" for name, value in values.items()) + " }"


def _snake(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).lower()


def _error_class(code: str) -> str:
    return "".join(part.capitalize() for part in code.split("_"))
