"""Paths."""

from django.urls import path

from shop.views import Pets

urlpatterns = [path("v1/pets", Pets.as_view())]
