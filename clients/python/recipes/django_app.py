"""A page of animals with Django, in one file: a project has settings, and takes the client, view and path."""

import atexit
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path, reverse
from petstore_client import InvalidParameter, Petstore, RateLimited

# All threads share it; a forked process opens connections of its own. A visitor waits at most five seconds.
petstore = Petstore(os.environ["PETSTORE_URL"], os.environ["PETSTORE_KEY"], seconds=5)
atexit.register(petstore.close)


def animals(request: HttpRequest) -> HttpResponse:
    """A page, with the address of the next one."""
    try:
        page = petstore.pets.page(limit=20, cursor=request.GET.get("cursor"))
    except InvalidParameter as error:  # the cursor is from the visitor
        return HttpResponse(error.message, status=400, content_type="text/plain")
    except RateLimited as error:  # for longer than a visitor waits
        after = f"{error.retry_after_seconds or 1:.0f}"
        return HttpResponse("Try again later.", status=503, headers={"Retry-After": after})
    following = f"{reverse('animals')}?cursor={page.next_cursor}" if page.next_cursor else None
    return JsonResponse({"animals": [pet.name for pet in page.items], "next": following})


urlpatterns = [path("animals", animals, name="animals")]
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"])
app = get_wsgi_application()
