"""Settings for an interface alone: no sessions, no templates, no admin."""

import os
import secrets

SECRET_KEY = secrets.token_hex(32)  # nothing here signs anything
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"
INSTALLED_APPS = ["rest_framework", "shop"]
MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"]
USE_TZ = True
TIME_ZONE = "UTC"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["PETS_DATABASE"],
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            # Every commit is on the disk before it returns.
            "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;",
        },
    }
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["shop.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["shop.authentication.HasKey"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_THROTTLE_CLASSES": ["shop.throttles.PerMinute", "shop.throttles.PerDay"],
    "DEFAULT_THROTTLE_RATES": {"minute": "1000000000/minute", "day": "100000000000/day"},
    "UNAUTHENTICATED_USER": None,
}
