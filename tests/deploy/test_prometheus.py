"""deploy/prometheus/rules.yaml: alerts that fire when they should, by promtool and on real metrics."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from petstore.ops import report
from petstore.ops.supervision import SupervisorMetrics, supervision_metrics, write_metrics
from tests.deploy.files import DEPLOY
from tests.support import machine
from tests.support.service import Shop

RULES = DEPLOY / "prometheus" / "rules.yaml"
ALERTS = {rule["alert"]: rule for rule in yaml.safe_load(RULES.read_text("utf-8"))["groups"][0]["rules"]}
NAMED = {name for rule in ALERTS.values() for name in re.findall(r"(?:petstore|process)_\w+", rule["expr"])}
JOB = 'instance="a:8080",job="shop"'

# Series, a minute apart, that an alert is for: Prometheus' notation, start+step x times.
TROUBLE = {
    "PetstoreNotReady": {"petstore_ready": "1x50 0x80", "petstore_store_up": "1x50 0x80"},
    "PetstoreInternalError": {'petstore_requests_total{operation="listPets",status="500"}': "0x50 1x80"},
    "PetstoreUnavailable": {
        'petstore_requests_total{operation="listPets",status="503"}': "0+60x130",
        'petstore_requests_total{operation="listPets",status="200"}': "0+600x130",
    },
    "PetstoreLimiterOutage": {"petstore_limiter_outage": "0x50 1x80"},
    "PetstoreCountersNotSaved": {"petstore_counters_saved_timestamp_seconds": "0x130"},
    "PetstoreStoreCrowded": {"petstore_store_writes_waiting": "600x130", "petstore_pool_waiting": "0x130"},
    "PetstoreEventsHeld": {"petstore_events_held_seconds": "0x50 1+60x80"},
    "PetstoreWebhooksWait": {
        "petstore_webhook_oldest_undelivered_seconds": "0x50 1+60x80",
        'petstore_webhook_deliveries_total{outcome="delivered"}': "0+5x50 250x80",
    },
    "PetstoreWebhooksFail": {
        'petstore_webhooks{state="failing"}': "1x50 4x80",
        'petstore_webhooks{state="healthy"}': "3x130",
    },
    "PetstoreMailWaits": {"petstore_mail_oldest_seconds": "0x50 0+60x80"},
    "PetstoreMailRefused": {'petstore_mails_total{outcome="given_up"}': "0x50 0+1x80"},
    "PetstoreCommitsSlow": {
        'petstore_store_commit_seconds_bucket{le="0.25"}': "0+9x130",
        'petstore_store_commit_seconds_bucket{le="1.0"}': "0+10x130",
        'petstore_store_commit_seconds_bucket{le="+Inf"}': "0+10x130",
    },
    "PetstoreDiskFills": {  # with a temporary file now and then
        "petstore_disk_free_bytes": " ".join(
            str(1_000_000_000 - 3_000_000 * minute - 40_000_000 * (minute % 7 == 3)) for minute in range(131)
        )
    },
    "PetstoreDescriptorsFill": {"process_open_fds": "900x130", "process_max_fds": "1000x130"},
    "PetstoreBackupOld": {"petstore_backup_timestamp_seconds": "-200000x130"},
    "PetstoreKeysTried": {'petstore_refusals_total{window="address"}': "0x50 1+1x80"},
    "PetstoreBans": {"petstore_bans_total": "0x50 1x80"},
    "PetstoreLogLinesDropped": {"petstore_log_lines_dropped_total": "0x50 1+1x80"},
    "PetstoreWorkersEnd": {'petstore_worker_restarts_total{cause="hung"}': "0x50 1x80"},
    "PetstoreStartsOften": {"process_start_time_seconds": "0x50 60+60x10 660x69"},
    "PetstoreBackgroundDown": {"petstore_background_up": "1x50 0x80"},
    "PetstoreReloadFailed": {'petstore_reloads_total{result="refused"}': "0x50 1x80"},
    "PetstorePackageReplaced": {"petstore_package_replaced": "0x50 1x80"},
    "PetstoreDown": {"up": "1x50 0x80"},
    "PetstoreAbsent": {"petstore_build_info": "1x50 stale"},
    "PetstoreJobAbsent": {  # beside another one, such as staging
        "petstore_build_info": "1x50 stale",
        "up": "1x50 stale",
        'petstore_build_info{instance="other",job="other"}': "1x130",
        'up{instance="other",job="other"}': "1x130",
    },
}
# Alerts with a test of their own: not on one replica, or not alone.
APART = {"PetstoreMostlyUnavailable", "PetstoreTargetLost"}


def promtool(*words: str | Path, text: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [machine.program("promtool"), *words], input=text, capture_output=True, timeout=150, check=False
    )


def labelled(series: str) -> str:
    """A series with the labels that Prometheus gives to what it scrapes, unless it has them."""
    if "instance=" in series:
        return series
    name, _, labels = series.rstrip("}").partition("{")
    return f"{name}{{{labels},{JOB}}}" if labels else f"{name}{{{JOB}}}"


async def healthy(shop: Shop) -> dict[str, str]:
    """The series that rules name, of a healthy service in use. They go on for two hours from time 0."""
    await shop.post({"name": "Rex", "categoryId": 1})
    await shop.ask("GET", "/v1/pets")
    text = (await shop.call("GET", "/metrics")).body.decode()
    samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    named = (sample for sample in samples if sample[0].partition("{")[0] in NAMED)
    series = {re.sub("_info{.*", "_info", name): f"{float(value):f}x130" for name, _, value in named}
    moving = ("petstore_counters_saved_timestamp_seconds", "petstore_backup_timestamp_seconds")
    return series | dict.fromkeys(moving, "0+60x130") | {"up": "1x130"}


def of_one(series: dict[str, str]) -> dict[str, str]:
    """Return only the series of one operation: promtool takes three times as long for all."""
    return {name: it for name, it in series.items() if "operation=" not in name or "listPets" in name}


def fires(series: dict[str, str], alert: str | None) -> dict[str, object]:
    """Only this alert fires within two hours of these series; None: no one."""
    fired = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[2h]))'
    alone = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else []
    return {"name": alert or "none"} | expected(series, fired, {"120m": alone})


def expected(
    series: dict[str, str], query: str, samples: dict[str, list[dict[str, object]]], interval: str = "1m"
) -> dict[str, object]:
    """A test of promtool: the query has these samples at these times, of series with steps of `interval`."""
    return {
        "interval": interval,
        "input_series": [{"series": labelled(name), "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": time, "exp_samples": shown} for time, shown in samples.items()
        ],
    }


def check(folder: Path, *tests: dict[str, object], evaluated: str = "1m") -> None:
    """promtool finds each so; else its message names those that are not."""
    file = folder / "test.yaml"
    rules = {"rule_files": [str(RULES)], "evaluation_interval": evaluated, "tests": list(tests)}
    file.write_text(yaml.safe_dump(rules), encoding="utf-8")
    done = promtool("test", "rules", file)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_rules_are_rules() -> None:
    """promtool reads the file, with every expression and template in it."""
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


async def test_metrics_are_metrics(shop: Shop) -> None:
    """promtool has no remark about names, units, help and types of a real scrape."""
    done = promtool("check", "metrics", text=(await shop.call("GET", "/metrics")).body)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# What changes in two hours and is for nobody.
SILENT = {
    # The owner of a webhook asked for them: they are delivered, and half of the webhooks may fail.
    "old events are sent again": {
        "petstore_webhook_oldest_undelivered_seconds": "9999999-60x130",
        'petstore_webhook_deliveries_total{outcome="delivered"}': "0+1x130",
        'petstore_webhooks{state="failing"}': "3x130",
        'petstore_webhooks{state="healthy"}': "3x130",
    },
    # It comes once, at once or in minutes, and leaves room: for hours the trend looks as if more would.
    "a large file": {"petstore_disk_free_bytes": "12000000000x50 9000000000x80"},
    "a long import": {"petstore_disk_free_bytes": "12000000000x50 12000000000-600000000x5 9000000000x74"},
    "an upgrade and two reloads": {"process_start_time_seconds": "0x50 60x1 120x1 180x76"},
    # Its mails are repeated for days and given up; others' arrive, or there are none for some hours.
    **{
        f"a wrong address beside {sent}": {
            "petstore_mails_waiting": f"{sent + 3}x130",
            'petstore_mails_total{outcome="given_up"}': "0x100 2x30",
            'petstore_mails_total{outcome="failed"}': "0+1x130",
            'petstore_mails_total{outcome="sent"}': f"0 {sent}x129",
        }
        for sent in (0, 9)
    },
}
# For a while only: nothing is given up for four days, and each mail has its next try.
ALL_MAIL_REFUSED = {
    "petstore_mails_waiting": "0x50 6x80",
    'petstore_mails_total{outcome="failed"}': "0x50 6x80",
}


async def test_what_is_for_nobody_is_silent(shop: Shop, tmp_path: Path) -> None:
    """No alert on a real scrape that stays as it is, and none on changes that pass."""
    of_all = await healthy(shop)
    changes = (fires(of_one(of_all) | change, None) | {"name": what} for what, change in SILENT.items())
    check(tmp_path, fires(of_all, None), *changes)


@pytest.mark.slow
async def test_each_alert_fires(shop: Shop, tmp_path: Path) -> None:
    """Each alert fires on its own trouble, from its first event, and no other does. A look each 2 minutes."""
    assert TROUBLE.keys() == ALERTS.keys() - APART
    series = of_one(await healthy(shop))
    tests = (fires(series | trouble, alert) for alert, trouble in TROUBLE.items())
    refused = fires(series | ALL_MAIL_REFUSED, "PetstoreMailRefused")
    check(tmp_path, *tests, refused, evaluated="2m")


async def test_rules_ask_for_what_there_is(shop: Shop, tmp_path: Path) -> None:
    """Each metric in a rule is one of a real scrape: a misspelt one would never fire."""
    text = (await shop.call("GET", "/metrics")).body.decode()
    write_metrics(tmp_path, SupervisorMetrics(background=True))
    shown = set(re.findall(r"^(\w+)", text, re.M)) | {"up"}
    shown |= {metric.name for metric in supervision_metrics(tmp_path)()}
    assert NAMED
    assert NAMED - shown == set()


READY, ANSWERS = "petstore_ready", "petstore_requests_total"
REFUSED, SERVED = (f'{ANSWERS}{{operation="listPets",status="{status}"}}' for status in (503, 200))
# 15 s apart. The outage begins at 10 minutes; a look at the store and a scrape come before it is seen.
OUTAGES = {
    "store away, idle": {READY: "1x40 1 0x40"},
    "store away, load": {REFUSED: "0x40 0+900x40", SERVED: "0+900x40 36000x41"},
    "Valkey away": {"petstore_limiter_outage": "0x40 0 2x40"},
    "service away": {"up": "1x40 0x41", "petstore_build_info": "1x40 stale"},
}


@pytest.mark.parametrize("outage", OUTAGES)
def test_a_total_outage_pages_within_90_seconds(outage: str, tmp_path: Path) -> None:
    """Under load and idle, with scrapes and evaluations 15 seconds apart."""
    healthy_series = {READY: "1x81", REFUSED: "0x81", SERVED: "0+900x81", "up": "1x81"}
    series = healthy_series | {"petstore_build_info": "1x81"} | OUTAGES[outage]
    pages = 'count(ALERTS{alertstate="firing",severity="page"}) > bool 0'
    shown = {"9m45s": [], "11m30s": [{"labels": "{}", "value": 1}]}
    check(tmp_path, expected(series, pages, shown, "15s"), evaluated="15s")


def test_one_target_of_several_vanishes(tmp_path: Path) -> None:
    """It vanishes from discovery, so that it is not even down: a ticket within a quarter of an hour."""
    shown = ("petstore_build_info", "up")
    targets = {f'{name}{{instance="{of}",job="shop"}}': "1x90" for name in shown for of in "ab"}
    lost = {'petstore_build_info{instance="c",job="shop"}': "1x50 stale"}
    alerts = 'count by (alertname) (ALERTS{alertstate="firing"})'
    told = [{"labels": '{alertname="PetstoreTargetLost"}', "value": 1}]
    check(tmp_path, expected(targets | lost, alerts, {"50m": [], "57m": told}))


def test_each_alert_says_what_to_look_at() -> None:
    """`summary` says what is wrong, `description` where to look or what to do: no page repeats them."""
    for alert, rule in ALERTS.items():
        assert set(rule["annotations"]) == {"summary", "description"}, alert


@pytest.mark.parametrize(
    ("alert", "condition"),
    {
        "PetstoreCountersNotSaved": f"> {report.SAVED_LATE_SECONDS}",
        "PetstoreStoreCrowded": f"writes_waiting > {report.WRITES_WAITING} or petstore_pool_waiting > 0",
        "PetstoreDiskFills": f"petstore_disk_free_bytes < {report.ROOM_FOR_COPIES} *"
        " (petstore_database_bytes + petstore_database_log_bytes)",
        "PetstoreDescriptorsFill": f"> {report.DESCRIPTORS_USED} * process_max_fds",
        "PetstoreBackupOld": f"> {report.BACKUP_OLD_DAYS} * 86400",
    }.items(),
)
def test_the_page_of_the_service_has_the_thresholds_of_the_alerts(alert: str, condition: str) -> None:
    """An operator without Prometheus reads there what an alert would say: change both or none."""
    assert condition in ALERTS[alert]["expr"]
