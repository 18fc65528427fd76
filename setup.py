"""The distribution tf-yarn-ops for tools that call setup.py; all that it says stands in pyproject.toml."""

from setuptools import setup

setup()
