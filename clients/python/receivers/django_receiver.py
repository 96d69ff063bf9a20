"""A receiver of webhooks with Django, in one file: a project has settings, and takes `hook` and its path."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from petstore_client import Event, InvalidSignature
from petstore_client.webhooks import verify

received: dict[str, Event] = {}


def hook(request: HttpRequest) -> HttpResponse:
    """Answer within 15 seconds: do long work afterwards."""
    try:
        event = verify(request.body, request.headers, os.environ["WEBHOOK_SECRET"])
    except InvalidSignature as error:
        return HttpResponse(error.message, status=400, content_type="text/plain")
    received.setdefault(event.id, event)  # it may come again
    return HttpResponse(status=204)


urlpatterns = [path("hook", csrf_exempt(hook))]  # the signature is the proof: the service has no cookie
settings.configure(ROOT_URLCONF=__name__, MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"])
app = get_wsgi_application()
