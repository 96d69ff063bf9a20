"""Files for containers and Kubernetes: checked by the tools that know their formats, and against the
service: each setting in them exists, and each number fits the others."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from petstore import __version__, config
from petstore.core.durations import parse_duration
from petstore.core.errors import ConfigurationError
from petstore.core.mails import MailServer
from petstore.core.targets import UrlGuard
from petstore.server.process import FINISH_SECONDS_MAX
from tests.deploy.files import (
    COMPOSE,
    DEPLOY,
    KUSTOMIZATION,
    MANIFESTS,
    NGINX,
    SECRETS,
    SITE,
    corrected,
    manifest,
    passes,
    settings_of,
    settings_of_pods,
    tool,
    unit,
)
from tests.support.cases import every_case
from tests.support.valkey import find_valkey
from tools.servers.ports import free_port
from tools.servers.valkey import Valkey

REPLICAS = {name: each for name, each in COMPOSE["services"].items() if name.startswith("replica-")}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("yamllint", ["--strict", "--config-file", "deploy/.yamllint.yaml", "deploy"]),
        ("check-jsonschema", ["--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml"]),
        ("hadolint", ["deploy/Dockerfile"]),
        ("kubernetes-validate", ["--strict", "--quiet", *MANIFESTS]),  # nor an unknown member
    ],
)
def test_the_makers_of_each_format_have_no_remark(program: str, words: list[str | Path]) -> None:
    """The checkers of YAML, compose files, images and Kubernetes objects (by its schemas) find no fault."""
    passes(tool(program, *words))


class TestSettings:
    """A setting that does not exist would stop the start; one that is forgotten would not be noticed."""

    def test_settings_of_compose_are_the_same_for_all_and_fit(self, tmp_path: Path) -> None:
        """Both replicas and the migration run with the same ones, and they fit the rest of the file."""
        assert len(REPLICAS) == 2
        for each in (*REPLICAS.values(), COMPOSE["services"]["migrate"]):
            settings = settings_of(each["environment"], tmp_path)
            assert settings.replicas == len(REPLICAS)
            assert settings.workers == 2
            (proxy,) = settings.trusted_proxies
            assert (
                f"{proxy.network_address}"
                == COMPOSE["services"]["nginx"]["networks"]["inside"]["ipv4_address"]
            )
            for name in SECRETS:
                assert Path(each["environment"][name]).name in each["secrets"]

    def test_settings_of_kubernetes_are_the_environment(self, tmp_path: Path) -> None:
        """The generated ConfigMap is the environment; the secret is where it says; links to services are off,
        since a Service named petstore would set PETSTORE_PORT to an address."""
        environment = corrected(settings_of_pods())
        deployment = manifest("Deployment")["spec"]
        most = deployment["replicas"] + deployment["strategy"]["rollingUpdate"]["maxSurge"]
        assert settings_of(environment, tmp_path).replicas == most
        pod = manifest("Deployment")["spec"]["template"]["spec"]
        assert pod["enableServiceLinks"] is False
        (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "secrets"]
        for name in SECRETS:
            path = Path(environment[name])
            assert str(path.parent) == mount["mountPath"]
            assert path.name in manifest("Secret")["stringData"]

    @pytest.mark.parametrize("name", ["PETSTORE_TRUSTED_PROXIES", "PETSTORE_OPS_NETWORKS"])
    def test_no_network_of_a_cluster_is_guessed(self, name: str, tmp_path: Path) -> None:
        """A pod does not start with the file as it is, and says which setting has to be written."""
        environment = settings_of_pods()
        with pytest.raises(ConfigurationError, match=f"{name}=.*NETWORK-OF-THE-"):
            settings_of(corrected(environment) | {name: environment[name]}, tmp_path)

    def test_every_pod_has_the_image_and_the_settings_of_the_kustomization(self) -> None:
        """The names that kustomize replaces are there: the image, and the ConfigMap, which gets a hash."""
        pod = manifest("Deployment")["spec"]["template"]["spec"]
        (image,) = KUSTOMIZATION["images"]
        (generator,) = KUSTOMIZATION["configMapGenerator"]
        containers = [*pod["initContainers"], *pod["containers"]]
        assert len(containers) == 2
        for each in containers:
            assert each["image"] == image["name"]
            assert each["envFrom"] == [{"configMapRef": {"name": generator["name"]}}]
        listed = {DEPLOY / "kubernetes" / name for name in KUSTOMIZATION["resources"]}
        assert listed == {path for path in MANIFESTS if "example" not in path.name}

    def test_of_the_image(self, tmp_path: Path) -> None:
        """ENV names settings; the port that is exposed and asked is the default one."""
        text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        settings = settings_of(dict(re.findall(r"\b(PETSTORE_\w+)=(\S+)", text)), tmp_path)
        assert not settings.is_loopback
        assert f"EXPOSE {settings.port}\n" in text

    def test_of_the_volume(self) -> None:
        """The default database is a file of the working directory, which outlives the container."""
        text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        (volume,) = re.findall(r"^VOLUME (\S+)$", text, re.M)
        assert f"WORKDIR {volume}\n" in text
        assert f"COPY --from=build --chown=10001:10001 {volume} {volume}\n" in text

    def test_who_may_read_metrics(self, tmp_path: Path) -> None:
        """Only the monitoring network may read metrics: every replica is in it, and the proxy is not."""
        networks = COMPOSE["networks"]
        subnet = ip_network(networks["monitoring"]["ipam"]["config"][0]["subnet"])
        assert networks["monitoring"]["internal"] is True
        for each in REPLICAS.values():
            others = set(settings_of(each["environment"], tmp_path).ops_networks) - {
                ip_network("127.0.0.0/8")
            }
            assert others == {subnet}
            assert "monitoring" in each["networks"]
        proxy = COMPOSE["services"]["nginx"]["networks"]["inside"]["ipv4_address"]
        assert ip_address(proxy) not in subnet
        assert "monitoring" not in COMPOSE["services"]["nginx"]["networks"]

    def test_the_version_is_that_of_the_program(self) -> None:
        """The label of the image and each of its tags in deploy/ name the version of the program."""
        files = [
            DEPLOY / "Dockerfile",
            DEPLOY / "compose.yaml",
            *sorted((DEPLOY / "kubernetes").glob("*.yaml")),
        ]
        text = "".join(path.read_text(encoding="utf-8") for path in files)
        named = re.findall(r"(?:VERSION=|petstore:|newTag: )(\d+\.\d+\.\d+)", text)
        assert len(named) >= 4
        assert set(named) == {__version__}


class TestStaging:
    """A second instance beside production, which has nothing of production."""

    def test_staging_of_compose_has_a_volume_of_its_own_and_no_secret(self, tmp_path: Path) -> None:
        """A file in a volume of its own, no secret, no network of the database; nginx knows its address."""
        services = COMPOSE["services"]
        staging, proxy = services["staging"], services["nginx"]["networks"]["staging"]["ipv4_address"]
        settings = settings_of(staging["environment"], tmp_path)
        assert (settings.stage, settings.valkey_url, staging["secrets"]) == ("staging", "", [])
        assert settings.database_url == "sqlite:///petstore.db"  # in the image's working directory
        assert (staging["profiles"], staging["volumes"]) == (["staging"], ["staging:/var/lib/petstore"])
        assert list(map(str, settings.trusted_proxies)) == [f"{proxy}/32"]
        assert "inside" not in staging["networks"]
        assert f"server {staging['networks']['staging']['ipv4_address']}:8080;" in NGINX

    def test_staging_of_kubernetes_is_production_with_three_settings(self, tmp_path: Path) -> None:
        """All of production's files in another namespace, with three settings of its own."""
        folder = DEPLOY / "kubernetes-staging"
        overlay = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
        assert overlay["resources"] == ["../kubernetes"]
        assert overlay["namespace"] != KUSTOMIZATION["namespace"]
        (generator,) = overlay["configMapGenerator"]
        assert (generator["name"], generator["behavior"]) == ("petstore", "merge")
        more = dict(re.findall(r"^(\w+)=(.*)$", (folder / "settings.env").read_text("utf-8"), re.M))
        settings = settings_of(corrected(settings_of_pods()) | more, tmp_path)
        assert (settings.stage, len(more)) == ("staging", 3)
        assert settings.other_base_url == settings_of_pods()["PETSTORE_BASE_URL"]

    @pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
    def test_kustomize_makes_it(self, tmp_path: Path) -> None:
        """Each object is in staging's namespace, and one by the schemas of Kubernetes."""
        command = ["kubectl", "kustomize", str(DEPLOY / "kubernetes-staging")]
        made = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True).stdout
        (tmp_path / "made.yaml").write_text(made)
        passes(tool("kubernetes-validate", "--strict", "--quiet", tmp_path / "made.yaml"))
        objects = {each["kind"]: each["metadata"] for each in yaml.safe_load_all(made)}
        assert objects.pop("Namespace")["name"] == "petstore-staging"
        assert {each["namespace"] for each in objects.values()} == {"petstore-staging"}
        assert len(objects) == len(KUSTOMIZATION["resources"])  # the ConfigMap in place of the Namespace


class TestWebhooks:
    """They go out, to where the service lets them."""

    def test_replicas_have_a_way_out(self) -> None:
        """Replicas and staging reach the outside by a network of their own; database and Valkey have none."""
        outward = {name for name, each in COMPOSE["networks"].items() if not each.get("internal")}
        ways = {name: outward & set(each["networks"]) for name, each in COMPOSE["services"].items()}
        assert {name: way for name, way in ways.items() if way} == {
            **{name: {"webhooks"} for name in (*REPLICAS, "staging")},
            "nginx": {"outside"},
        }

    @every_case(
        ("address", "allowed"),
        [
            ("1.1.1.1", True),
            ("2606:4700::1", True),
            *((address, False) for address in ("10.1.2.3", "169.254.169.254", "192.168.0.1", "127.0.0.1")),
            *((address, False) for address in ("fe80::1", "fd00:ec2::254", "::ffff:10.1.2.3")),
        ],
    )
    def test_pods_reach_public_addresses_alone(self, address: str, allowed: bool) -> None:
        """The network says no where the service could reach more than a webhook may."""
        *_, rule = manifest("NetworkPolicy")["spec"]["egress"]
        assert {"port": 443} in rule["ports"]
        blocks = [each["ipBlock"] for each in rule["to"]]
        reached = [
            block
            for block in blocks
            if ip_address(address) in ip_network(block["cidr"])
            and not any(ip_address(address) in ip_network(out) for out in block["except"])
        ]
        assert (len(reached) == 1) == allowed
        assert (UrlGuard().fault_of_address(address) is None) == allowed


class TestMail:
    """It goes out to its server, where an operator sets one."""

    FROM: ClassVar = {"PETSTORE_MAIL_FROM": "petstore@example.com"}

    @pytest.mark.parametrize(
        ("name", "secrets_in"),
        [("compose.yaml", "compose.yaml"), ("kubernetes/settings.env", "secret.example.yaml")],
    )
    def test_the_settings_that_are_commented_out_send_mail(
        self, name: str, secrets_in: str, tmp_path: Path
    ) -> None:
        """All that is needed, with the server's password in a secret."""
        text = (DEPLOY / name).read_text(encoding="utf-8")
        off = dict(re.findall(r"^ *# ?(PETSTORE_(?:SMTP|MAIL)_\w+)(?:=|: )(\S+)$", text, re.M))
        secrets = (DEPLOY / name).with_name(secrets_in).read_text(encoding="utf-8")
        assert re.search(rf"^  # ?{Path(off['PETSTORE_SMTP_URL_FILE']).name}: ", secrets, re.M)
        (tmp_path / "url").write_text("smtps://petstore:secret@mail")
        settings = config.load(off | {"PETSTORE_SMTP_URL_FILE": str(tmp_path / "url")})
        assert settings.smtp_url == MailServer("mail", 465, True, "petstore", "secret")

    def test_pods_reach_its_ports(self) -> None:
        """The network policy lets pods reach the ports that smtp:// and smtps:// URLs without a port mean."""
        urls = ("smtp://mail", "smtps://mail")
        settings = [config.load(self.FROM | {"PETSTORE_SMTP_URL": url}) for url in urls]
        ports = [each.smtp_url.port for each in settings if each.smtp_url]
        rules = [
            [each["port"] for each in rule["ports"]] for rule in manifest("NetworkPolicy")["spec"]["egress"]
        ]
        assert sorted(ports) in rules


class TestNumbers:
    """Times and sizes that stand in two places."""

    def test_a_stop_has_the_time_that_it_may_take(self, tmp_path: Path) -> None:
        """The drain, a body that is still arriving, and the parent's three seconds, before anybody kills."""

        def needed(environment: dict[str, str]) -> float:
            settings = settings_of(environment, tmp_path)
            return settings.drain_ms / 1_000 + min(settings.body_timeout_ms / 1_000, FINISH_SECONDS_MAX) + 3

        for each in REPLICAS.values():
            assert parse_duration(each["stop_grace_period"]) / 1_000 > needed(each["environment"])
        pod = manifest("Deployment")["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] > needed(corrected(settings_of_pods()))
        for name in ("petstore.service", "petstore@.service"):
            assert int(dict(unit(name))["TimeoutStopSec"]) > needed({})

    def test_nginx_lets_idle_connections_go_before_a_replica_does(self, tmp_path: Path) -> None:
        """nginx closes idle connections within half the drain, so no request meets one that is closing."""
        for text in (NGINX, SITE):
            idle = re.search(r"^ *upstream .*?keepalive_timeout (\w+);", text, re.M | re.S)
            assert idle is not None
            assert parse_duration(idle[1]) <= settings_of({}, tmp_path).drain_ms / 2

    def test_nginx_knows_the_replicas(self) -> None:
        """Their addresses are those of the network, each as a first choice and in reserve."""
        addresses = [each["networks"]["inside"]["ipv4_address"] for each in REPLICAS.values()]
        servers = re.findall(r"server ([\d.]+):8080 (\w+)", NGINX)
        assert servers == [
            *((each, "max_fails") for each in addresses),
            *((each, "backup") for each in addresses),
        ]

    def test_nginx_counts_the_addresses_of_a_subscriber_as_one(self) -> None:
        """A /64 of IPv6, as for the service; others as they are."""
        text = (DEPLOY / "nginx" / "http.conf").read_text(encoding="utf-8")
        pattern = re.search(r"map \$remote_addr \$petstore_client \{[^~]*~(\S+)\" \$n;", text)
        assert pattern is not None
        assert re.findall(r"limit_conn_zone (\S+)", text) == ["$petstore_client"] * 2
        client = re.compile(pattern[1].replace("?<n>", "?P<n>"))

        def counted(address: str) -> str:
            found = client.match(address)
            return found["n"] if found else address

        assert counted("2001:db8:1:2::7") == counted("2001:db8:1:2:3:4:5:6") == "2001:db8:1:2:"
        assert counted("2001:db8:1:2::7") != counted("2001:db8:1:3::7")
        assert counted("2001:db8::7") == counted("2001:db8::a:0:0:7")
        assert [counted(each) for each in ("192.0.2.7", "::1")] == ["192.0.2.7", "::1"]

    def test_nginx_in_the_container_finds_its_files(self) -> None:
        """Each file that is included is brought there by compose.yaml, beside the one that includes it."""
        brought = {
            each["target"]: COMPOSE["configs"][each["source"]]["file"]
            for each in COMPOSE["services"]["nginx"]["configs"]
        }
        included = set(re.findall(r"include (\S+);", NGINX))
        assert len(included) == 2
        assert brought == {f"/etc/nginx/{name}": f"nginx/{name}" for name in ("nginx.conf", *included)}

    def test_the_image_is_made_from_the_lock(self) -> None:
        """The lock has checksums, and the build sees what it may."""
        text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        ignored = (DEPLOY.parent / ".dockerignore").read_text(encoding="utf-8").split()
        copied = {name for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.M) for name in line.split()}
        assert copied == {name[1:] for name in ignored if name.startswith("!")}
        files = {path for name in copied for path in DEPLOY.parent.glob(name)}
        assert all(any(DEPLOY.parent.glob(name)) for name in copied)
        shown = (DEPLOY.parent / "src/petstore/site/documents").iterdir()
        assert {link.resolve() for link in shown} <= files
        assert "--require-hashes --no-deps -r requirements-scale.lock" in text


class TestSecrets:
    """deploy/secrets/make, and the Valkey that compose.yaml starts with them."""

    @pytest.fixture
    def secrets(self, tmp_path: Path) -> Path:
        """What it makes."""
        copied = tmp_path / "secrets"
        copied.mkdir()
        shutil.copy(DEPLOY / "secrets" / "make", copied)
        subprocess.run([copied / "make"], check=True, timeout=10)
        return copied

    def test_they_fit_each_other_and_are_made_once(self, secrets: Path) -> None:
        """The addresses carry the passwords, every file that compose.yaml names is there, and a second run
        changes nothing."""
        assert {path.name for path in secrets.iterdir()} == {*COMPOSE["secrets"], "make"}
        assert (secrets / "database_password").read_text().strip() in (secrets / "database_url").read_text()
        named = ("database_url", "valkey_url", "secrets_key")
        config.load({f"PETSTORE_{name.upper()}_FILE": str(secrets / name) for name in named})
        before = (secrets / "valkey_url").read_text()
        again = subprocess.run([secrets / "make"], capture_output=True, text=True, timeout=10, check=False)
        assert again.returncode == 1
        assert "there already" in again.stderr
        assert (secrets / "valkey_url").read_text() == before
        assert secrets.stat().st_mode & 0o777 == 0o700

    @pytest.mark.e2e
    def test_valkey_starts_with_them(self, secrets: Path, tmp_path: Path) -> None:
        """The real server takes the arguments of compose.yaml, keeps a log of what it was told, and lets
        nobody in without the password."""
        port = free_port()
        words = [
            word.replace("/run/secrets", str(secrets)) for word in COMPOSE["services"]["valkey"]["command"]
        ]
        options = (*words[1:], "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path))
        server = Valkey(find_valkey(), tmp_path, tmp_path / "log", ("127.0.0.1", port), *options)

        def ask(*lines: bytes) -> bytes:
            try:
                with socket.create_connection(("127.0.0.1", port), 5) as connection:
                    answer = b""
                    for line in lines:
                        connection.sendall(line + b"\r\n")
                        answer = connection.recv(1_000)
                    return answer
            except OSError:
                return b""

        try:
            server.start()
            assert ask(b"PING").startswith(b"-NOAUTH")
            password = (secrets / "valkey_url").read_text().split("@")[0].rpartition(":")[2]
            assert ask(b"AUTH wrong").startswith(b"-WRONGPASS")
            assert ask(b"AUTH " + password.encode(), b"SET a 1") == b"+OK\r\n"
            assert (tmp_path / "appendonlydir").is_dir()
        finally:
            server.stop()
