"""The files under deploy/, parsed, and the settings of the service that each of them makes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from petstore import config
from petstore.config import Settings
from tests.architecture.sources import ROOT
from tests.support.machine import absent

DEPLOY = ROOT / "deploy"
NGINX = (DEPLOY / "nginx" / "nginx.conf").read_text(encoding="utf-8")
SITE = (DEPLOY / "nginx" / "site.conf").read_text(encoding="utf-8")
STAGING = (DEPLOY / "nginx" / "staging.conf").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
KUSTOMIZATION: dict[str, Any] = yaml.safe_load(
    (DEPLOY / "kubernetes" / "kustomization.yaml").read_text("utf-8")
)
MANIFESTS = sorted(path for path in (DEPLOY / "kubernetes").glob("*.yaml") if path.stem != "kustomization")
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SECRETS = {
    "PETSTORE_DATABASE_URL_FILE": "postgresql://petstore:secret@postgres/petstore",
    "PETSTORE_VALKEY_URL_FILE": "valkey://:secret@valkey:6379/0",
    "PETSTORE_SECRETS_KEY_FILE": f"{'k' * 43}=",
}


def manifest(kind: str) -> dict[str, Any]:
    """The one Kubernetes object of this kind."""
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in MANIFESTS]
    (document,) = [each for each in found if each["kind"] == kind]
    return dict(document)


def settings_of_pods() -> dict[str, str]:
    """The environment that kustomize gives to every pod, as it is in the file."""
    (generator,) = KUSTOMIZATION["configMapGenerator"]
    (name,) = generator["envs"]
    text = (DEPLOY / "kubernetes" / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


def corrected(environment: dict[str, str]) -> dict[str, str]:
    """An environment with networks where an operator has to write them."""
    return {name: re.sub(r"NETWORK-OF-[A-Z-]+", "192.0.2.0/24", text) for name, text in environment.items()}


def unit(name: str) -> list[tuple[str, str]]:
    """A unit's settings in the order in which they stand."""
    text = (DEPLOY / "systemd" / name).read_text(encoding="utf-8")
    return re.findall(r"^(\w+)=(.*)$", text, re.M)


def settings_of(environment: dict[str, str], folder: Path) -> Settings:
    """What the service makes of an environment, with files of the right form where it names secrets."""
    given = dict(environment)
    for name, text in SECRETS.items():
        if name in given:
            (folder / name).write_text(text)
            given[name] = str(folder / name)
    return config.load(given)


def tool(name: str, *words: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a program of the test kit; where it is missing, skip, and fail when CI is set."""
    program = Path(sys.executable).with_name(name)
    if not program.exists():
        absent(name)
    return subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, timeout=50, check=False)


def passes(done: subprocess.CompletedProcess[str]) -> None:
    """It found nothing."""
    if done.returncode:
        pytest.fail(done.stdout + done.stderr)
