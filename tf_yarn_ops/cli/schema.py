"""``ytf schema``: the JSON Schema of a job's YAML and of the site file, for editors."""

import click

from ..declaration import json_schema
from ..hadoop.site import Site
from ..job.spec import JobSpec
from ..terminal.output import print_json

_PARTS = {"job": JobSpec, "site": Site}


@click.command()
@click.argument("file", type=click.Choice([*_PARTS]), default="job")
def schema(file: str) -> None:
    """Print the JSON Schema of job.yaml or of site.yaml.

    An editor completes and checks such a file by it.
    """
    print_json(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"{file}.yaml of tf_yarn_ops",
            **json_schema(_PARTS[file]),
        }
    )
