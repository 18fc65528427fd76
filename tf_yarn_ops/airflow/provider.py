"""The description of this package for Airflow, by the entry point ``apache_airflow_provider``.

Airflow calls `get_provider_info` in every process, so this module imports nothing.
"""

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Return the description of the provider, in the form of Airflow's schema."""
    return {
        "package-name": "tf-yarn-ops",
        "name": "TensorFlow on YARN",
        "description": "Distributed TensorFlow on YARN: submitted without a JVM, all jobs watched by one request.",
        "integrations": [
            {
                "integration-name": "TensorFlow on YARN",
                "external-doc-url": "https://hadoop.apache.org/docs/current/hadoop-yarn/hadoop-yarn-site/YARN.html",
                "tags": ["apache"],
            }
        ],
        "operators": [
            {
                "integration-name": "TensorFlow on YARN",
                "python-modules": ["tf_yarn_ops.airflow.operator", "tf_yarn_ops.airflow.cleanup"],
            }
        ],
        "sensors": [{"integration-name": "TensorFlow on YARN", "python-modules": ["tf_yarn_ops.airflow.sensor"]}],
        "hooks": [{"integration-name": "TensorFlow on YARN", "python-modules": ["tf_yarn_ops.airflow.hook"]}],
        "connection-types": [
            {
                "connection-type": "tf_yarn",
                "hook-class-name": "tf_yarn_ops.airflow.hook.YarnHook",
                "hook-name": "TensorFlow on YARN",
                "ui-field-behaviour": {
                    "hidden-fields": ["password"],
                    "relabeling": {"host": "ResourceManager", "schema": "http or https", "login": "Hadoop user"},
                    "placeholders": {
                        "host": "rm1.example.com, or http://rm1:8088,http://rm2:8088",
                        "port": "8088",
                        "schema": "http",
                        "login": "the user of the Airflow worker",
                    },
                },
                "conn-fields": {
                    "site_file": {
                        "label": "Site file",
                        "schema": {"type": ["string", "null"]},
                        "description": "Path of a site.yaml on the Airflow workers. Default: their own site file.",
                    },
                    "hadoop_conf_dir": {
                        "label": "HADOOP_CONF_DIR",
                        "schema": {"type": ["string", "null"]},
                        "description": "Folder with yarn-site.xml and core-site.xml on the Airflow workers. It "
                        "replaces the address.",
                    },
                    "staging": {
                        "label": "Staging directory",
                        "schema": {"type": ["string", "null"]},
                        "description": "Directory for applications and the cache; {user} stands for the user.",
                    },
                    "submit_with": {
                        "label": "Submit with",
                        "schema": {"type": ["string", "null"], "enum": ["auto", "rest", "skein"]},
                        "description": "rest: plain HTTP. skein: Skein's Java client. auto: rest where possible.",
                    },
                },
            }
        ],
        "task-decorators": [
            {"name": name, "class-name": f"tf_yarn_ops.airflow.decorator.{name}_task"}
            for name in ("tf_yarn", "tf_yarn_cmd")
        ],
        "extra-links": [
            f"tf_yarn_ops.airflow.links.{name}"
            for name in ("TrainingLink", "YarnApplicationLink", "YarnLogsLink", "TensorBoardLink")
        ],
        "config": {
            "tf_yarn": {
                "description": "TensorFlow trainings on YARN.",
                "options": {
                    "deployment_id": {
                        "description": "The name that the first training gives this Airflow, among all that use "
                        "the same Hadoop cluster. Afterwards the variable tf_yarn_deployment_id in "
                        "Airflow's database has it, for all machines. Default: a unique name.",
                        "version_added": None,
                        "type": "string",
                        "example": "production",
                        "default": "",
                    },
                },
            },
        },
        "triggers": [{"integration-name": "TensorFlow on YARN", "python-modules": ["tf_yarn_ops.airflow.trigger"]}],
    }
