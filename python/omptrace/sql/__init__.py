"""Queries that run unchanged on DuckDB, Spark and other engines. Each file is one SELECT, and a view of the same name.

They select from the tables of docs/columns.md and from each other, in the order of `VIEWS`.
"""

from importlib.resources import files

#: The queries, each after those that it selects from, with all tables that it needs.
VIEWS = {
    "states": ("work", "waits"),
    "job": ("processes",),
    "job_accounting": ("processes", "accounting"),
    "job_efficiency": ("processes", "accounting"),
    "job_blame": ("processes", "accounting", "blame"),
    "job_regions": ("regions",),
    "job_critical_path": ("processes", "critical_path"),
    "rank_balance": ("processes", "accounting"),
    "flat_profile": ("accounting", "places"),
    "load_imbalance": ("accounting", "places"),
    "slowest_instances": ("slices", "places", "threads"),
}


def possible(tables):
    """Returns the queries for which these tables suffice, in order."""
    return [view for view, needs in VIEWS.items() if set(needs) <= set(tables)]


def query(view):
    """Returns the text of a query."""
    return (files(__name__) / f"{view}.sql").read_text(encoding="utf-8")
