"""One file of the tests that come with SQLAlchemy for every dialect: the one that DIALECT_FILE names."""

import importlib
import os

module = importlib.import_module(f"sqlalchemy.testing.suite.{os.environ['DIALECT_FILE']}")
globals().update({name: value for name, value in vars(module).items() if not name.startswith("__")})
