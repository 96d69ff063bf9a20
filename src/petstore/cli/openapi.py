"""`petstore openapi`: the contract, with the servers of these settings."""

from __future__ import annotations

import click

from petstore.cli.context import Session
from petstore.cli.groups import examples


@click.command(epilog=examples("petstore openapi > openapi.yaml", "petstore openapi --json > openapi.json"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
@click.pass_obj
def openapi(session: Session, as_json: bool) -> None:
    """Print the OpenAPI document of the interface.

    A running service has the same at /openapi.yaml and /openapi.json. Its `servers` come from
    PETSTORE_BASE_URL and PETSTORE_STAGING_BASE_URL; without the first from PETSTORE_HOST and PETSTORE_PORT,
    where only this machine can reach the service.
    """
    from petstore.wiring import operations

    document = operations.openapi_document(session.settings)
    if as_json:
        click.echo(document.as_json())
    else:
        click.echo(document.as_yaml(), nl=False)
