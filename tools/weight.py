"""How much the project weighs, at some commits: python -m tools.weight [COMMIT…]

Lines of Python, words of prose, and in how many files a reader meets a member of an animal, a word of the
business, a window of the limits. Tests, migrations, decision records and the word's own files do not count.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PROBES = {
    "files that name a member of an animal (category)": r"\b[cC]ategory_?[iI]d\b",
    "files that name a word of the business (categories)": r"\b\w*[cC]ategories\b",
    "files that name a window of the limits (minute)": r"\bper_?[mM]inute\b|\bminute(_\w+|[A-Z]\w+)",
}
_PRODUCT = re.compile(
    r"(src|clients)/(?!.*/migrations/).+\.(py|lua|ya?ml|html|js)$|docs/[^/]+\.md$|[A-Z]+\.md$"
)


def git(*words: str) -> str:
    """What git prints in this repository."""
    return subprocess.run(["git", *words], cwd=_ROOT, check=True, capture_output=True, text=True).stdout


def texts(commit: str) -> dict[str, str]:
    """The text files of a commit by their paths."""
    names = [name for name in git("ls-tree", "-r", "--name-only", commit).splitlines() if _counts(name)]
    asked = "".join(f"{commit}:{name}\n" for name in names).encode()
    batch = ["git", "cat-file", "--batch"]
    answer = subprocess.run(batch, cwd=_ROOT, check=True, capture_output=True, input=asked).stdout
    found = {}
    for name in names:
        head, _, answer = answer.partition(b"\n")
        size = int(head.split()[2])
        found[name], answer = answer[:size].decode(), answer[size + 1 :]
    return found


def _counts(name: str) -> bool:
    return name.endswith((".py", ".md")) or _PRODUCT.match(name) is not None


def weights(files: dict[str, str]) -> dict[str, int]:
    """Each figure by its name."""

    def lines(folder: str) -> int:
        return sum(
            len(text.splitlines())
            for name, text in files.items()
            if name.startswith(f"{folder}/") and name.endswith(".py")
        )

    def words(names: list[str]) -> int:
        return sum(len(files[name].split()) for name in names)

    found = {f"lines of Python in {folder}/": lines(folder) for folder in ("src", "clients", "tests")}
    records = [name for name in files if name.startswith("docs/decisions/")]
    found["words of decision records"] = words(records)
    pages = [
        name
        for name in files
        if name.endswith(".md") and not name.endswith(("CHANGELOG.md", "RESULTS.md")) and name not in records
    ]
    found["words of pages"] = words(pages)
    for title, probe in _PROBES.items():
        named = re.compile(probe)
        found[title] = sum(
            1
            for name, text in files.items()
            if _PRODUCT.match(name) and "categor" not in name and named.search(text) is not None
        )
    return found


def main() -> int:
    """Print the table; the exit code."""
    commits = sys.argv[1:] or ["HEAD"]
    columns = [weights(texts(commit)) for commit in commits]
    sys.stdout.write(f"{'':56}" + "".join(f"{commit[:10]:>12}" for commit in commits) + "\n")
    for title in columns[0]:
        sys.stdout.write(f"{title:56}" + "".join(f"{column[title]:12,}" for column in columns) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
