"""A web shop by the Python client: pages of animals, orders, and what the store's side does with them."""

from __future__ import annotations

import os

from flask import Flask, redirect, render_template_string, request, url_for
from petstore_client import Conflict, InvalidParameter, OrderStatus, Petstore
from werkzeug.wrappers import Response

app = Flask(__name__)
shopper = Petstore(os.environ["PETSTORE_URL"], os.environ["PETSTORE_KEY"], seconds=5)
staff = Petstore(os.environ["PETSTORE_URL"], os.environ["PETSTORE_STAFF_KEY"], seconds=5)

CATEGORIES = """{% for each in categories %}
<a href="{{ url_for('animals', category_id=each.id) }}">{{ each.name }}</a>{% endfor %}"""
ANIMALS = """{% for pet in page.items %}<form method="post" action="{{ url_for('order', pet_id=pet.id) }}">
<b>{{ pet.name }}</b> <button>Order</button></form>{% endfor %}
{% if page.next_cursor %}
<a rel="next" href="{{ url_for('animals', category_id=category_id, cursor=page.next_cursor) }}">Next</a>
{% endif %}"""
ORDERS = """{% for order in orders %}<form method="post" action="{{ url_for('advance', order_id=order.id) }}">
<b>{{ order.id }}</b> {{ order.account }}: {{ order.status }}
<button name="status" value="{{ order.status }}">Go on</button></form>{% endfor %}"""
NEXT_STATUS: dict[str, OrderStatus] = {"placed": "approved", "approved": "delivered"}
OPEN: tuple[OrderStatus, ...] = ("placed", "approved")


@app.get("/")
def categories() -> str:
    """All categories."""
    return render_template_string(CATEGORIES, categories=shopper.categories.list())


@app.get("/categories/<int:category_id>")
def animals(category_id: int) -> str:
    """Twenty that can be ordered, and where the next ones are."""
    page = shopper.pets.page(
        limit=20, status="available", category_id=category_id, cursor=request.args.get("cursor")
    )
    return render_template_string(ANIMALS, page=page, category_id=category_id)


@app.post("/animals/<int:pet_id>/order")
def order(pet_id: int) -> str:
    """Order an animal."""
    placed = shopper.orders.place(pet_id)
    return f"Thank you. Your order is {placed.id}."


@app.get("/staff/orders")
def orders() -> str:
    """Those of all shoppers that are not delivered."""
    found = [order for status in OPEN for order in staff.orders.list(scope="all", status=status)]
    return render_template_string(ORDERS, orders=found)


@app.post("/staff/orders/<int:order_id>")
def advance(order_id: int) -> Response:
    """Approve or deliver."""
    staff.orders.update(order_id, status=NEXT_STATUS[request.form["status"]])
    return redirect(url_for("orders"))


@app.errorhandler(Conflict)
def too_late(error: Conflict) -> tuple[str, int]:
    """Somebody was faster."""
    return f"Somebody was faster. {error.message}", 409


@app.errorhandler(InvalidParameter)
def mistaken(error: InvalidParameter) -> tuple[str, int]:
    """The cursor is from the visitor's address."""
    return error.message, 400
