"""What PostgreSQL can of what SQLAlchemy's suite for dialects may ask for."""

import inspect

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

# What the suite leaves out unless a dialect asks for it, and PostgreSQL has not.
NOT_POSTGRESQL = {
    "async_dialect", "computed_columns_default_persisted", "dbapi_lastrowid", "emulated_lastrowid",
    "emulated_lastrowid_even_with_sequences", "fetch_percent", "foreign_keys_reflect_as_index",
    "materialized_views_reflect_pk", "nvarchar_types", "reflect_indexes_with_ascdesc_as_expression",
    "repeated_remote_col_foreign_keys", "unique_index_reflect_as_unique_constraints",
}


class Requirements(SuiteRequirements):
    """The suite's own, with all that a dialect may add but for the above."""


def left_out(requirement):
    return isinstance(requirement, property) and "return exclusions.closed()" in inspect.getsource(requirement.fget)


for name, _ in inspect.getmembers(SuiteRequirements, left_out):
    if name not in NOT_POSTGRESQL:
        setattr(Requirements, name, property(lambda self: exclusions.open()))
