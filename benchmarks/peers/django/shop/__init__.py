"""The same job in Django REST Framework.

`PETS_DATABASE=… DJANGO_SETTINGS_MODULE=shop.settings gunicorn --chdir benchmarks/peers/django shop.wsgi`
"""
