"""Who asks: the key in `Authorization: Bearer`, looked up by its digest."""

import hashlib
import time

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission

from shop.models import ApiKey


class KeyAuthentication(BaseAuthentication):
    """Sets `request.auth` to the key."""

    def authenticate(self, request):
        scheme, _, token = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        key = ApiKey.objects.filter(digest=hashlib.sha256(token).digest()).first()
        if key is None or key.revoked_at_ms is not None:
            raise AuthenticationFailed("The API key is missing or invalid.")
        if key.expires_at_ms is not None and key.expires_at_ms <= time.time() * 1_000:
            raise AuthenticationFailed("The API key has expired.")
        return None, key

    def authenticate_header(self, request):
        return "Bearer"


class HasKey(BasePermission):
    """Only for requests with a valid key."""

    def has_permission(self, request, view):
        return isinstance(request.auth, ApiKey)
