"""Rules of the house that a machine can keep: where environment, time and SQL are; sizes; docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.sources import ROOT, SOURCE, Module, functions, modules, tracked

FILE_LINES = 300
FUNCTION_LINES = 40

_CLOCK_CALLS = {"now", "utcnow", "today"}
_SQL = re.compile(
    r"^\s*(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s.+\sSET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX|TRIGGER)"
    r"|DROP\s+TABLE|ALTER\s+TABLE|PRAGMA\s+\w+|BEGIN(\s+IMMEDIATE)?$|COMMIT$|ROLLBACK)",
    re.DOTALL,
)
# A docstring with one of these in front goes on from what stands above it.
_LEANS = re.compile(
    r' *"""(Also|And|As|Before|But|By|Else|Even|For|From|In|Into|Its|Likewise|Neither|Nor|Not|Of|Oldest|Once'
    r"|Or|Rounded|So|Such|That of|The same|Those|To|Until|Where|Which|While|With|Within|Without)\b"
)


def dotted(node: ast.AST) -> str:
    """`a.b.c` for an attribute of a name, else the last part."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def texts(module: Module) -> Iterator[tuple[str, int]]:
    """String constants, parts of f-strings included, without docstrings."""
    docstrings = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr):
                docstrings.add(first.value)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value, node.lineno


_READERS = {
    ("petstore.config", "read_environment"),
    ("petstore.config.systemd", "read_systemd"),
    ("petstore.config.user", "read_actor"),
}


def test_the_environment_is_read_in_three_functions() -> None:
    """config.read_environment, for settings, which are rows of the table in config/table.py;
    config.systemd.read_systemd, for what systemd tells; and config.user.read_actor, for sudo."""
    readers = []
    for module in modules():
        if not re.search("environ|getenv", module.text):
            continue
        inside = {
            id(node)
            for function in functions(module.tree)
            if (module.name, function.name) in _READERS
            for node in ast.walk(function)
        }
        for node in ast.walk(module.tree):
            name = dotted(node)
            if (
                isinstance(node, ast.expr)
                and name in {"os.environ", "os.environb", "os.getenv", "environ", "getenv"}
                and id(node) not in inside
            ):
                readers.append(f"{module}:{node.lineno} reads {name}; add a setting to config.TABLE instead.")
    assert readers == []


def test_the_time_is_asked_in_one_module() -> None:
    """clock.py; whoever needs the time takes a Clock, so that a test can steer it.

    Waiting (asyncio.sleep, a timeout, a thread's pause) asks nobody for the time. The time stamp of a log
    line about the program itself is structlog's own.
    """
    faults = []
    for module in modules():
        if module.name == "petstore.core.clock":
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import) and any(alias.name == "time" for alias in node.names):
                faults.append(f"{module}:{node.lineno} imports time; take a Clock instead.")
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                faults.append(f"{module}:{node.lineno} imports from time; take a Clock instead.")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner, method = dotted(node.func.value), node.func.attr
                asks = owner.split(".")[-1] in {"datetime", "date"} and method in _CLOCK_CALLS
                if asks or (owner.endswith("loop") and method == "time"):
                    faults.append(f"{module}:{node.lineno} asks {owner}.{method}(); take a Clock instead.")
    assert faults == []


def test_sql_stands_under_storage_and_transactions_alone() -> None:
    """A method of a store says what is wanted; only these two packages know how it is asked for."""
    faults = [
        f"{module}:{line} has SQL; put it into a script under transactions/, or into storage/."
        for module in modules()
        if not module.is_storage
        for text, line in texts(module)
        if _SQL.search(text)
    ]
    faults += [
        f"{path.relative_to(ROOT)}: SQL files belong under storage/."
        for path in SOURCE.rglob("*.sql")
        if "storage" not in path.parts
    ]
    assert faults == []


_WORK = {"os", "pathlib", "shutil", "socket", "subprocess", "tempfile", "threading", "concurrent.futures"}


def test_the_core_opens_no_file_and_starts_no_thread() -> None:
    """It is given what it reads and writes; but core/packaged.py reads the program's own files."""
    faults = []
    for module in modules():
        if not module.name.startswith("petstore.core.") or module.name == "petstore.core.packaged":
            continue
        for node in ast.walk(module.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Call):
                names += [
                    called for called in (dotted(node.func),) if called in {"open", "asyncio.to_thread"}
                ]
            faults += [
                f"{module} uses {name}; let the caller do that, or move it to an edge."
                for name in names
                if name in {*_WORK, "open", "asyncio.to_thread"}
            ]
    assert faults == []


def test_the_core_names_no_command() -> None:
    """The core serves every edge; cli/ adds to an error which command helps."""
    faults = [
        f"{module}:{line} names a command; say what is wrong, and let cli/ say which command helps."
        for module in modules()
        if module.name.startswith("petstore.core")
        for text, line in texts(module)
        if re.search(r"petstore [a-z]", text)
    ]
    assert faults == []


# What is markup already, by file, how often and why it may be. That of the site is made from the documents
# and the contract of the package alone.
_MARKUP = {
    "petstore/site/templates/layout.html": 1,  # a place to break in a heading, which is escaped before
    "petstore/site/documents.py": 3,  # rendered Markdown, highlighted code
    "petstore/site/descriptions.py": 2,  # the contract's Markdown
    "petstore/site/reference.py": 1,  # highlighted examples
    "petstore/site/samples.py": 1,  # highlighted code
    "petstore/site/search.py": 1,  # <mark>, its word escaped by Markup.format
    "petstore/site/templates/llms.txt": 1,  # plain text
    "petstore/console/barcodes.py": 1,  # <svg> of a number
    "petstore/console/formats.py": 2,  # a dash; <time> of digits and names of zones
}
_UNESCAPED = re.compile(
    r"\|\s*(?:safe|forceescape)\b|\bMarkup\(|\bautoescape\s+false\b|\bautoescape=(?!True)"
)


def test_templates_escape_what_they_show() -> None:
    """Everything but what is allowed here by name, so that no text from outside becomes markup."""
    found, lax = {}, []
    for path in (*SOURCE.rglob("templates/*.*"), *SOURCE.rglob("*.py")):
        name, text = str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8")
        found[name] = len(_UNESCAPED.findall(text))
        if text.count("jinja2.Environment(") != text.count("autoescape=True"):
            lax.append(f"{name} has an environment of templates without autoescape=True.")
    assert lax == []
    assert {name: count for name, count in found.items() if count != _MARKUP.get(name, 0)} == {}, (
        "Let the template escape it; where it must not, add the reason to _MARKUP."
    )


def test_no_source_file_is_longer_than_300_lines() -> None:
    """Split it by what it speaks of; the two parts get a docstring each."""
    faults = []
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix not in {".py", ".sql", ".html", ".css", ".js", ".yaml"}:
            continue
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > FILE_LINES:
            faults.append(f"{path.relative_to(ROOT)} has {lines} lines, {FILE_LINES} are allowed; split it.")
    assert faults == []


def test_no_function_is_longer_than_40_lines() -> None:
    """Give its steps names: each becomes a function."""
    faults = []
    for module in modules():
        for function in functions(module.tree):
            assert function.end_lineno is not None
            lines = function.end_lineno - function.lineno + 1
            if lines > FUNCTION_LINES:
                faults.append(f"{module}:{function.lineno} {function.name} has {lines} lines; split it.")
    assert faults == []


def test_every_module_opens_with_a_docstring_of_1_to_6_lines() -> None:
    """What is here, and what deliberately is not."""
    lines = {str(module): len((ast.get_docstring(module.tree) or "").splitlines()) for module in modules()}
    assert {module: count for module, count in lines.items() if not 1 <= count <= 6} == {}


def test_every_public_thing_of_the_core_has_a_docstring() -> None:
    """Units, limits, errors, and where the specification says so."""
    faults = []
    for module in modules():
        if not module.is_core:
            continue
        for node in module.tree.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("_") and not ast.get_docstring(node):
                faults.append(f"{module}:{node.lineno} {node.name} has no docstring; say what it promises.")
    assert faults == []


def test_every_docstring_stands_alone() -> None:
    """An editor shows it without the sibling above and without the body, by which a fragment has its noun."""
    faults = []
    for path in tracked():
        if path.suffix != ".py":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if begins := _LEANS.match(line):
                place = f"{path.relative_to(ROOT)}:{number}"
                faults.append(f"{place}: do not begin with {begins[1]!r}; name the noun or say what it does.")
    assert faults == []


def test_every_test_says_its_guarantee() -> None:
    """A test without a docstring is a test that nobody knows what it is for."""
    faults = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            if function.name.startswith("test_") and not ast.get_docstring(function):
                place = f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
                faults.append(f"{place}: write the guarantee in a docstring.")
    assert faults == []


def test_no_test_waits_for_an_hour_to_pass() -> None:
    """Time is steered by ManualClock; only tests/support may pause, while it polls for something outside.

    The simulation has an event loop of its own, in which an hour takes no time.
    """
    faults = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if {"support", "simulation"} & set(path.parts):
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if ".sleep" in text else ():
            if not isinstance(node, ast.Call) or dotted(node.func) not in {"time.sleep", "asyncio.sleep"}:
                continue
            zero = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            if not zero:
                faults.append(
                    f"{path.relative_to(ROOT)}:{node.lineno} sleeps; move the clock, or wait with"
                    " tests.support.waiting.until."
                )
    assert faults == []
