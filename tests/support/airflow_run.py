"""A DAG run of an `AirflowSite` and its task, as a person sees and treats them in the UI."""

import json
import re

import psutil

from support.waiting import until


class Run:
    """A DAG run, and its task ``train``."""

    def __init__(self, site, dag, run, task="train"):
        self.site, self.dag, self.id, self.task = site, dag, run, task
        self.path = f"dags/{dag}/dagRuns/{run}"

    def __repr__(self):
        return f"{self.dag}/{self.id}"

    @property
    def state(self):
        return self.site.get(self.path)["state"]

    def instance(self, task=None):
        return self.site.get(f"{self.path}/taskInstances/{task or self.task}")

    def task_state(self):
        return self.instance()["state"]

    def peek(self, column):
        """Return a column of the task instance from Airflow's database: the API server takes 40 ms of CPU for an answer."""
        found = self.site.query(
            f"SELECT {column} FROM task_instance WHERE dag_id = ? AND run_id = ? AND task_id = ?",
            *(self.dag, self.id, self.task),
        )
        return found and found[0]

    def make_older(self, hours):
        """Let the run have begun so much earlier: a time limit of seconds may be over before a busy machine submits.

        The database is PostgreSQL.
        """
        changed = self.site.query(
            "UPDATE dag_run SET start_date = start_date - CAST(? AS INTERVAL) WHERE dag_id = ? AND run_id = ? "
            "RETURNING run_id", f"{hours} hours", self.dag, self.id)  # fmt: skip
        assert changed == [self.id]

    def until_state(self, *states, seconds=90):
        """Wait for the task's state, and give the task instance."""

        def there():
            return self.peek("state") in states and (instance := self.instance())["state"] in states and instance

        try:
            return until(there, seconds, 1)
        except AssertionError:
            raise AssertionError(
                f"{self} is {self.task_state()} after {seconds} s, not {' or '.join(states)}:\n{self.log()[-6000:]}"
            ) from None

    def is_deferral_seen(self, attempt=r"\d+"):
        """Return whether the scheduler has seen the exit of a worker that has deferred the task, in a try of this number."""
        seen = re.compile(
            f"TaskInstance Finished: dag_id={self.dag}, .*run_id={self.id}, .* state=deferred, .* try_number={attempt},"
        )
        return bool(seen.search((self.site.home / "scheduler.log").read_text(errors="replace")))

    def mark(self, state):
        """Mark the task as a person does in the UI."""
        self.site.call("PATCH", f"{self.path}/taskInstances/{self.task}", new_state=state)

    def mark_run(self, state):
        self.site.call("PATCH", self.path, state=state)

    def clear(self):
        self.site.call(
            "POST",
            f"dags/{self.dag}/clearTaskInstances",
            dry_run=False,
            dag_run_id=self.id,
            task_ids=[self.task],
            only_failed=False,
            reset_dag_runs=True,
        )

    def xcom(self, key="return_value", task=None):
        """Return the value of an XCom; None if there is none."""
        response = self.site.client.get(
            f"/api/v2/{self.path}/taskInstances/{task or self.task}/xcomEntries/{key}",
            params={"deserialize": "false", "stringify": "false"},
        )
        if response.status_code == 404:
            return None
        assert response.is_success, response.text
        value = response.json()["value"]
        return json.loads(value) if isinstance(value, str) and value[:1] in "{[" else value

    def links(self):
        return self.site.get(f"{self.path}/taskInstances/{self.task}/links")["extra_links"]

    def log(self, attempt=None):
        """Return the task's log as text, by default of the last attempt; empty for a mapped task, which has many logs."""
        found = self.site.client.get(f"/api/v2/{self.path}/taskInstances/{self.task}")
        if not found.is_success:
            return ""
        attempt = attempt or max(1, found.json()["try_number"])
        response = self.site.client.get(
            f"/api/v2/{self.path}/taskInstances/{self.task}/logs/{attempt}",
            params={"full_content": "true"},
            headers={"Accept": "application/json"},
        )
        if response.status_code == 404:
            return ""
        lines = response.json()["content"]
        return "\n".join(
            line
            if isinstance(line, str)
            else f"{line.get('timestamp') or ''} {line['event']}"
            + (f" {line['error_detail']}" if line.get("error_detail") else "")
            for line in lines
        )

    def log_file(self, attempt=1):
        """Return the path of a worker's log below the folder of logs."""
        return f"dag_id={self.dag}/run_id={self.id}/task_id={self.task}/attempt={attempt}.log"

    def is_logged(self, words, attempt="*"):
        """Return whether a log of the task has these words, in its file: the API server takes 60 ms of CPU for a log."""
        files = (self.site.home / "logs").glob(f"{self.log_file(attempt)}*")
        return any(words in file.read_text(errors="replace") for file in files)

    def worker(self):
        """Wait for the process that runs the task and its supervisor. Return both."""

        def found():
            pid = self.peek("pid")
            return pid and psutil.pid_exists(pid) and psutil.Process(pid)

        process = until(found, 60, 0.05)
        return process, process.parent()
