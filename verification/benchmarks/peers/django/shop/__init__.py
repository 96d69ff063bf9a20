"""The benchmark's job in Django REST Framework.

`PETS_DATABASE=… DJANGO_SETTINGS_MODULE=shop.settings gunicorn shop.wsgi` in the folder above
"""
