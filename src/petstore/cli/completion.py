"""`petstore completion`: click's own script for a shell, with the line that installs it."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from petstore.cli.groups import examples

_INSTALL = {
    "bash": "echo 'eval \"$(petstore completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(petstore completion zsh)\"' >> ~/.zshrc",
    "fish": "petstore completion fish > ~/.config/fish/completions/petstore.fish",
}


@click.command(
    epilog=examples(
        'eval "$(petstore completion bash)"        # for this shell only',
        *_INSTALL.values(),
    )
)
@click.argument("shell", type=click.Choice(list(_INSTALL)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's script for completion.

    With it, the Tab key completes commands and options. Its last line says how to install it.
    """
    found = get_completion_class(shell)
    assert found is not None
    script = found(context.find_root().command, {}, "petstore", "_PETSTORE_COMPLETE")
    # The class's own `source` would start the shell first, to complain about an old version of it.
    click.echo(ShellComplete.source(script).rstrip())
    click.echo(f"# To install it: {_INSTALL[shell]}")
