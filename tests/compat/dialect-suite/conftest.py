"""SQLAlchemy's plugin for pytest, without the extensions that its PostgreSQL set-up makes and its suite does not use."""

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402,F401,F403
from sqlalchemy.testing.plugin import pytestplugin  # noqa: E402


def pytest_sessionstart(session):
    import sqlalchemy.dialects.postgresql.provision  # noqa: F401
    from sqlalchemy.testing import provision

    provision.post_configure_engine.for_db("postgresql")(lambda *_: None)
    pytestplugin.pytest_sessionstart(session)
