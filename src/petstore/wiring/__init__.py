"""Joins the parts: the only package that knows the concrete classes of every edge."""
