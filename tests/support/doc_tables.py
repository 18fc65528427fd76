"""`tables`: the program that writes the tables of the documents, docs/tables.py, as a module."""

import importlib.util

from support.source import ROOT

_FOUND = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
tables = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(tables)
