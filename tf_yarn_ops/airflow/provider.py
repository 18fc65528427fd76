"""What Airflow is told of this package, through the entry point ``apache_airflow_provider``.

Airflow calls `get_provider_info` in every process, so it imports nothing.
"""

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Give the provider's description, as Airflow's schema wants it."""
    return {
        "package-name": "tf-yarn-ops",
        "name": "TensorFlow on YARN",
        "description": "Distributed TensorFlow on YARN, submitted without a JVM, watched with one poll for all jobs.",
        "integrations": [{
            "integration-name": "TensorFlow on YARN",
            "external-doc-url": "https://hadoop.apache.org/docs/current/hadoop-yarn/hadoop-yarn-site/YARN.html",
            "tags": ["apache"],
        }],
        "operators": [{"integration-name": "TensorFlow on YARN", "python-modules": ["tf_yarn_ops.airflow.operator"]}],
        "hooks": [{"integration-name": "TensorFlow on YARN", "python-modules": ["tf_yarn_ops.airflow.hook"]}],
        "connection-types": [{
            "connection-type": "tf_yarn",
            "hook-class-name": "tf_yarn_ops.airflow.hook.YarnHook",
            "hook-name": "TensorFlow on YARN",
            "ui-field-behaviour": {
                "hidden-fields": ["password"],
                "relabeling": {"host": "ResourceManager", "schema": "http or https", "login": "Hadoop user"},
                "placeholders": {"host": "rm1.example.com, or http://rm1:8088,http://rm2:8088", "port": "8088",
                                 "schema": "http", "login": "the user of the worker"},
            },
            "conn-fields": {
                "site_file": {
                    "label": "Site file", "schema": {"type": ["string", "null"]},
                    "description": "Path of a site.yaml on the workers. Default: theirs.",
                },
                "hadoop_conf_dir": {
                    "label": "HADOOP_CONF_DIR", "schema": {"type": ["string", "null"]},
                    "description": "Folder with yarn-site.xml and core-site.xml on the workers, instead of an address.",
                },
                "staging": {
                    "label": "Staging directory", "schema": {"type": ["string", "null"]},
                    "description": "Directory for applications and the cache; {user} is replaced.",
                },
                "submit_with": {
                    "label": "Submit with", "schema": {"type": ["string", "null"], "enum": ["auto", "rest", "skein"]},
                    "description": "rest is plain HTTP, skein is Skein's Java client; auto takes rest where it can.",
                },
            },
        }],
        "task-decorators": [{"name": "tf_yarn", "class-name": "tf_yarn_ops.airflow.decorator.tf_yarn_task"}],
        "extra-links": [f"tf_yarn_ops.airflow.links.{name}" for name in (
            "YarnApplicationLink", "YarnLogsLink", "TensorBoardLink")],
        "config": {
            "tf_yarn": {
                "description": "Trainings on YARN.",
                "options": {
                    "deployment_id": {
                        "description": "Names this Airflow among all that use the same Hadoop cluster, so that each "
                                       "knows its own applications. Default: the API server's base URL. Give a "
                                       "name of its own to each deployment, and never change it.",
                        "version_added": None, "type": "string", "example": "production", "default": "",
                    },
                },
            },
        },
        "triggers": [{"integration-name": "TensorFlow on YARN", "python-modules": ["tf_yarn_ops.airflow.trigger"]}],
    }
