"""What a task tells Airflow of its application: the XCom ``tf_yarn``, and the links."""

import json
from typing import Any

from ..follow.identity import Identity
from ..job.spec import JobSpec
from .links import urls_of


def tell(task_instance: Any, application_id: str, spec: JobSpec, resourcemanager: str, user: str,
         identity: Identity) -> dict[str, str]:
    """Push what is known of an application as soon as it has an id; give its links.

    Parameters
    ----------
    task_instance : RuntimeTaskInstance
    application_id : str
    spec : JobSpec
    resourcemanager : str
        Its URL.
    user : str
        Whose application it is.
    identity : Identity
    """
    links = urls_of(resourcemanager, application_id, spec.tensorboard is not None)
    task_instance.xcom_push("tf_yarn", {
        "application_id": application_id, "tracking_url": f"{resourcemanager}/proxy/{application_id}/",
        "name": spec.name, "queue": spec.queue, "user": user, "resourcemanager": resourcemanager,
        "generation": identity.generation, "attempt": identity.attempt,
    })  # fmt: skip
    for key, url in links.items():
        task_instance.xcom_push(key, url)
    return links


def told(task_instance: Any, key: str = "tf_yarn") -> Any:
    """Give what an earlier process of this try has told; None for nothing."""
    return task_instance.xcom_pull(task_ids=task_instance.task_id, map_indexes=task_instance.map_index, key=key)


def tell_again(task_instance: Any, first: str, now: str) -> None:
    """Let Airflow know that another application of the same try has trained."""
    for key in ("tf_yarn", *urls_of("", now, False)):
        text = json.dumps(told(task_instance, key))
        text = text.replace(first.removeprefix("application"), now.removeprefix("application"))
        task_instance.xcom_push(key, json.loads(text))
