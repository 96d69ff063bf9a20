"""Groups of commands: help, loading on use, and each error as one line with an exit code."""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from petstore.core.errors import OperatorError, PetstoreError

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_CUT_SHORT = 3
EXIT_UNAVAILABLE = 75  # EX_TEMPFAIL
EXIT_CONFIGURATION = 78  # EX_CONFIG
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell has it
# Faults of a write to a stream, which has no name.
_OUTPUT_FAULTS = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.ENOSPC)


def examples(*lines: str) -> str:
    """The end of a command's help: command lines, which click does not wrap."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


class PlainCommand(click.Command):
    """Refuses an option of its own after `--`, where it would silently be a name or a text."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args and not ctx.resilient_parsing:
            options = {option for each in self.get_params(ctx) for option in each.opts if option[:1] == "-"}
            for word in args[args.index("--") + 1 :]:
                if (option := word.partition("=")[0]) in options:
                    raise click.UsageError(f"{option} does nothing after `--`: put it before.", ctx)
        return super().parse_args(ctx, args)


_Decorator = Callable[[Callable[..., Any]], click.Command]


def command(
    name: str, *lines: str, kind: type[click.Command] = click.Command, text: str | None = None
) -> _Decorator:
    """A decorator: a command that gets the Session first, and `as_json` by `--json`, the last of its options.

    `lines` are its examples, `text` its help, if that is not the function's docstring.
    """

    def make(work: Callable[..., Any]) -> click.Command:
        made = click.command(name, cls=kind, epilog=examples(*lines), help=text)(click.pass_obj(work))
        shown = "Print JSON instead of text."
        made.params.append(click.Option(["--json", "as_json"], is_flag=True, help=shown))
        return made

    return make


class LazyGroup(click.Group):
    """A group that shows its help when no command is given, and its commands in the order of their table."""

    def offers(self, name: str, *lines: str) -> _Decorator:
        """`command`, for one of this group."""

        def make(work: Callable[..., Any]) -> click.Command:
            made = command(name, *lines, kind=PlainCommand)(work)
            self.add_command(made)
            return made

        return make

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class PetstoreCli(LazyGroup):
    """The program: loads a command when it is run, and turns every error into one line and an exit code.

    `summaries` has the first line of each command's help. The command NAME is NAME in petstore.cli.NAME.
    """

    def __init__(self, *, summaries: Mapping[str, str], **kwargs: Any) -> None:
        listed = {name: click.Command(name, help=summary) for name, summary in summaries.items()}
        super().__init__(commands=listed, **kwargs)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            command = getattr(importlib.import_module(f"petstore.cli.{name}"), name)
        return name, command, rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "petstore",
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the program and exit; with `standalone_mode` off, do as click does."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except Exception as error:
            from petstore.cli.output import drop_unwritten

            code = explain(error)
            drop_unwritten(sys.stdout)
        sys.exit(code)


def explain(error: Exception) -> int:
    """Print an error as one line on standard error; its exit code. An unexpected error is raised again."""
    from petstore.cli.output import echo_err

    if isinstance(error, click.Abort):
        return EXIT_INTERRUPTED
    message, code = _message_and_code(error)
    echo_err(f"petstore: {' '.join(message.split())}")  # one line, also when it quotes several
    return code


def _message_and_code(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an error. An unexpected one is raised again."""
    from petstore.core.errors import OperatorError, PetstoreError, StoreDamaged, StoreReadOnly, Unavailable

    if isinstance(error, click.UsageError):
        message = error.format_message().rstrip(".")
        hint = f" Try '{error.ctx.command_path} --help'." if error.ctx is not None else ""
        return f"{message}{'' if message.endswith('?') else '.'}{hint}", EXIT_USAGE
    if isinstance(error, click.ClickException):
        return error.format_message(), EXIT_REFUSED
    if isinstance(error, OperatorError):
        return str(error), _code_of(error)
    if isinstance(error, StoreDamaged):
        remedy = "Check PETSTORE_DATABASE_URL, or stop the server and restore a backup."
        return f"{error.message} {remedy}", EXIT_CONFIGURATION
    if isinstance(error, StoreReadOnly):
        remedy = "Let this user write the file and its directory; their file system may be mounted read-only."
        return f"{error.message} {remedy}", EXIT_CONFIGURATION
    if isinstance(error, PetstoreError):
        return _with_listing(error), EXIT_UNAVAILABLE if isinstance(error, Unavailable) else EXIT_REFUSED
    if message := _refused_by_the_system(error):
        return message, EXIT_REFUSED
    raise error


def _refused_by_the_system(error: Exception) -> str:
    """What the system would not do; empty for any other error."""
    if isinstance(error, OSError):
        reason = f"{error.strerror or error}."
        if error.filename:
            return f"{error.filename}: {reason}"
        if error.errno in _OUTPUT_FAULTS:
            return f"The output can't be written: {reason} A change that was made stays."
        return reason
    is_memory = isinstance(error, MemoryError)
    if is_memory or "can't start new thread" in str(error):
        lacks = "no more memory" if is_memory else "no further thread"
        return f"The system allows this program {lacks}: raise the limit (ulimit -a, or the container's)."
    return ""


def _code_of(error: OperatorError) -> int:
    from petstore.core.arguments import WrongArgument
    from petstore.core.errors import ConfigurationError

    if isinstance(error, WrongArgument):
        return EXIT_USAGE
    return EXIT_CONFIGURATION if isinstance(error, ConfigurationError) else EXIT_REFUSED


def _with_listing(error: PetstoreError) -> str:
    """The error's message; for something not found, with the command that lists the existing ones."""
    from petstore.core.errors import (
        AccountNotFound,
        CategoryNotFound,
        KeyNotFound,
        OrderNotFound,
        PersonNotFound,
        PetNotFound,
        WebhookNotFound,
    )

    listings = {
        PetNotFound: "pets list",
        OrderNotFound: "orders list",
        CategoryNotFound: "categories list",
        AccountNotFound: "accounts list",
        KeyNotFound: "keys list ACCOUNT",
        PersonNotFound: "people list",
        WebhookNotFound: "webhooks list",
    }
    for unknown, listing in listings.items():
        if isinstance(error, unknown):
            return f"{error.message.rstrip('.')}; `petstore {listing}` shows them."
    return error.message
