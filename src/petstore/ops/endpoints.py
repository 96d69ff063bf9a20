"""/healthz, /readyz and /metrics for operators: details only for the configured networks."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from petstore.core.client_address import Networks, client_address, is_host_of_ours, is_within
from petstore.core.errors import NotFound
from petstore.ops.health import Health
from petstore.ops.metrics import Metrics

_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Endpoints:
    """The handlers, for the operators of `networks` under one of `hosts`."""

    def __init__(
        self,
        *,
        health: Health,
        metrics: Metrics,
        networks: Networks,
        hosts: frozenset[str],
        trusted_proxies: Networks,
    ) -> None:
        self._health = health
        self._metrics = metrics
        self._networks = networks
        self._hosts = hosts
        self._trusted = trusted_proxies
        # A thread of its own: an alert waits for nothing else.
        self._thread = ThreadPoolExecutor(1, "petstore-scrapes")
        self.draining = False

    def routes(self) -> list[Route]:
        """Polled every few seconds, and so not in the access log."""
        return [
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/metrics", self.metrics),
        ]

    async def healthz(self, _request: Request) -> Response:
        """200 while the event loop runs; independent of the store."""
        return JSONResponse({"status": "ok"}, headers=_HEADERS)

    async def readyz(self, request: Request) -> Response:
        """200 if this process can serve requests, else 503."""
        await self._health.check_store()
        ready = self._health.is_ready and not self.draining
        body: dict[str, object] = {"status": "ready" if ready else "not ready"}
        if self._is_operator(request):
            accepting = "no, shutting down" if self.draining else "ok"
            body["checks"] = self._health.checks() | {"accepting": accepting}
        return JSONResponse(body, 200 if ready else 503, _HEADERS)

    async def metrics(self, request: Request) -> Response:
        """Prometheus' text format."""
        if not self._is_operator(request):
            raise NotFound(
                "Metrics are shown to PETSTORE_OPS_NETWORKS, under an address or one of PETSTORE_OPS_HOSTS."
            )
        scrape = self._metrics.scrape()
        text = await asyncio.get_running_loop().run_in_executor(self._thread, scrape.render)
        return Response(text, headers=_HEADERS, media_type=METRICS_TYPE)

    def _is_operator(self, request: Request) -> bool:
        """Whether an operator asks, by address and Host. An untrusted proxy on this machine could forward
        anyone's requests, and a page in an operator's browser could send them with another Host.
        """
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not is_host_of_ours(hosts[0], self._hosts):
            return False
        peer = request.client.host if request.client else "unknown"
        forwarded_for = ",".join(request.headers.getlist("x-forwarded-for"))
        if forwarded_for and not is_within(peer, self._trusted):
            return False
        return is_within(client_address(peer, forwarded_for, self._trusted), self._networks)
