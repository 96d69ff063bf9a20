"""Throttles by account: so many requests a minute and a day.

The framework's own keep the time of every request of the window in one list, which they copy with every
request: at these limits each request would be slower than the one before. So these count in fixed windows.
"""

import time

from rest_framework.throttling import SimpleRateThrottle


class WindowThrottle(SimpleRateThrottle):
    """A counter in the cache for each account and window."""

    def get_cache_key(self, request, view):
        if request.auth is None:
            return None
        window = int(time.time()) // self.duration
        return self.cache_format % {"scope": self.scope, "ident": f"{request.auth.account_id}_{window}"}

    def allow_request(self, request, view):
        key = self.get_cache_key(request, view)
        if key is None:
            return True
        self.cache.add(key, 0, self.duration)
        return self.cache.incr(key) <= self.num_requests

    def wait(self):
        return self.duration - time.time() % self.duration


class PerMinute(WindowThrottle):
    scope = "minute"


class PerDay(WindowThrottle):
    scope = "day"
