"""`TensorFlowYarnOperator`: a training on YARN as an Airflow task.

Airflow parses the file of a DAG at every start and every resumption of a task. This module therefore imports Airflow,
the standard library and the options of a job only; `execution` does the work, and is imported when the task runs.
"""

import inspect
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from jinja2.nativetypes import NativeEnvironment

from ..declaration import OPERATOR
from ..errors import SpecInvalid, did_you_mean
from ..job.options import options_of
from .kill_state import KillState
from .links import TensorBoardLink, TrainingLink, YarnApplicationLink, YarnLogsLink
from .versions import (
    AirflowTaskTimeout,
    Asset,
    BaseOperator,
    TaskDeferralError,
    TaskDeferralTimeout,
    conf,
    get_parsing_context,
    has_timed_out,
    render_template_to_string,
)

if TYPE_CHECKING:
    from .execution import TaskExecution

#: Options of ``ytf-submit`` whose names mean something else in Airflow, and their names here.
RENAMED: Mapping[str, str] = {
    "queue": "yarn_queue",
    "output": "output_path",
    "execution_timeout": "job_execution_timeout",
}
#: Names that people know from other tools, and ours.
ALIASES: Mapping[str, str] = {
    "memory": "task_memory", "worker_memory": "task_memory", "vcores": "task_vcores", "cores": "task_vcores",
    "cpus": "task_vcores", "gpus": "task_gpus", "num_gpus": "task_gpus", "workers": "cluster_requirement",
    "num_workers": "cluster_requirement", "num_ps": "cluster_requirement", "instances": "cluster_requirement",
    "tasks": "cluster_requirement", "image": "docker_image", "bash_command": "task_command", "cmd": "task_command",
    "env_vars": "env", "files": "file", "archives": "archive", "conn_id": "tf_yarn_conn_id",
}  # fmt: skip
_NO_JOB = "there is no job"
_OPTION_NAMES = {here: name for name, here in RENAMED.items()}
#: The options of the job, by their names here.
OPERATOR_OPTIONS: tuple[str, ...] = tuple(RENAMED.get(name, name) for name in options_of(OPERATOR, submission=False))
_CHOICES = {**{name: option.kind.choices for name, option in options_of(OPERATOR).items() if option.kind.choices},
            "on_kill": ("kill", "leave")}  # fmt: skip

#: Options that a check of the DAG file leaves out while they have a template: no other option depends on them.
_INDEPENDENT_OPTIONS = ("script", "name", "user", "env", "file", "archive", "environment", "docker_image",
                        "yarn_queue", "tag", "file_system")  # fmt: skip
#: Options that may have any text, so that one with a template can be checked by a sample.
_FREE_TEXT_OPTIONS = ("task_command", "command", "input", "output_path")


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the job to a signature: Airflow reads it for ``default_args``, ``partial`` and ``expand``."""
    signature = inspect.signature(function)
    *own, kwargs = signature.parameters.values()
    options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in OPERATOR_OPTIONS]
    vars(function)["__signature__"] = signature.replace(parameters=[*own, *options, kwargs])
    return function


class TensorFlowYarnOperator(BaseOperator):
    """Train on YARN; the Airflow task succeeds or fails with the training.

    The job is a `spec`, or `task_command` with `cluster_requirement`, or a `spec` that further options override. The
    options have the names of ``ytf-submit``, except three that Airflow uses itself: ``yarn_queue``, ``output_path``
    and ``job_execution_timeout``. All options, and every text inside `spec`, are templates. docs/guides/airflow.md
    describes each option.

    Parameters
    ----------
    spec : mapping, JobSpec or str, optional
        A job as ``ytf-submit --dry_run`` prints it, or the path of such a file on the Airflow worker.
    task_command, cluster_requirement, ... : optional
        The options of the job, among ``kwargs``. None means not given.
    tf_yarn_conn_id : str, optional
        A connection of type ``tf_yarn``. Without the default connection, ``YTF_RESOURCEMANAGER``, the site file or
        ``HADOOP_CONF_DIR`` names the cluster.
    deferrable : bool, optional
        Wait in the triggerer. Default: ``[operators] default_deferrable``.
    poll_interval : float, optional
        Seconds between two requests for the state of the application. Default 5.
    on_kill : {"kill", "leave"}, optional
        Whether the application is killed or continues when Airflow ends the task. Default ``kill``.
    wait_for_completion : bool, optional
        False ends the task as soon as YARN has accepted the application. Default True.
    model_asset : Asset or str, optional
        An asset, or its URI, that a success updates. The extra of the event has the path of the model, the metrics
        and the application id.
    skip_on_exit_code : int or collection of int, optional
        If the task of the job that failed first has one of these exit codes, the Airflow task is skipped. Default:
        none.
    log_tail_lines : int, optional
        Lines of the failed task's log at the end of the Airflow log. Default 50.
    stream_logs : str or list of str, optional
        Tasks of the job whose lines the Airflow log shows while the job trains: ``chief`` (the chief, else the first
        task), ``all``, or names such as ``worker:0`` and ``worker:*``. In the triggerer's part of the log only secrets
        in the options of the job are masked, see docs/guides/airflow.md. Default: none.
    yarn_lifetime : "auto", number of seconds, timedelta or None, optional
        The most that the job's ``queue_timeout`` and ``total_timeout`` may be, each. YARN itself ends the application
        at the sum of both plus 300 s, even when no part of Airflow runs. ``auto`` (default): the Airflow task's
        ``execution_timeout`` plus 300 s, if it has one, waits and kills. None leaves the job's own deadlines.
    submit_with : {"auto", "rest", "skein"}, optional
        Default: as the site file says.
    strict_placement : bool, optional
        Refuse a task that none of the running nodes can hold. Default: log a warning.
    **kwargs
        Arguments of every Airflow operator.

    Returns
    -------
    dict
        The report of the job (`JobReport.to_dict`). After a failure it is the XCom ``tf_yarn_status``.

    Raises
    ------
    ValueError
        With every fault that is visible when the DAG is parsed.
    """

    template_fields: Collection[str] = ("spec", *OPERATOR_OPTIONS)
    template_ext: Sequence[str] = ()
    template_fields_renderers = dict.fromkeys(
        ("spec", *(name for name, option in options_of(OPERATOR).items() if option.many)), "json"
    )
    operator_extra_links = (TrainingLink(), YarnApplicationLink(), YarnLogsLink(), TensorBoardLink())
    ui_color = "#fdecd2"
    renamed_options: Mapping[str, str] = RENAMED
    _needs_job = True

    @_with_options
    def __init__(
        self, *, spec: Any = None,
        tf_yarn_conn_id: str | None = "tf_yarn_default",
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 5.0, on_kill: str = "kill", wait_for_completion: bool = True,
        model_asset: Asset | str | None = None, skip_on_exit_code: int | Collection[int] | None = (),
        log_tail_lines: int = 50, stream_logs: str | Sequence[str] | None = None, yarn_lifetime: Any = "auto",
        submit_with: str | None = None, strict_placement: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        given = {**locals(), **{option: kwargs.pop(option, None) for option in OPERATOR_OPTIONS}}
        faults = _faults(given, self._needs_job)
        job_warnings: list[str] = []
        if self._needs_job and not kwargs.get("_airflow_from_mapped"):  # the values of a mapped task are rendered ones
            named = {fault.partition(":")[0] for fault in faults}
            found, job_warnings = _check_job(given)
            faults += [fault for fault in found if not named & {fault.partition(":")[0], _NO_JOB}]
        if faults:
            raise ValueError(f"{kwargs.get('task_id', type(self).__name__)}: " + "; ".join(faults))
        asset = Asset(model_asset) if isinstance(model_asset, str) else model_asset
        if asset is not None:
            kwargs["outlets"] = [*_as_list(kwargs.get("outlets")), asset]
        super().__init__(**kwargs)
        for warning in () if _is_parsed_for_another(self) else job_warnings:
            warnings.warn(f"{self.task_id}: {warning}", stacklevel=3)
        self.spec = spec
        for option in OPERATOR_OPTIONS:
            setattr(self, option, given[option])
        # The page of rendered templates shows only the options that were given; otherwise it shows None forty times.
        self.template_fields = tuple(
            field for field in type(self).template_fields if field not in given or given[field] is not None
        )
        self.tf_yarn_conn_id = tf_yarn_conn_id
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.kill_policy = on_kill
        self.wait_for_completion = wait_for_completion
        self.model_asset = asset
        self.skip_on_exit_code = () if skip_on_exit_code is None else skip_on_exit_code
        self.log_tail_lines = log_tail_lines
        self.stream_logs = tuple(_as_list(stream_logs))
        self.yarn_lifetime = yarn_lifetime
        self.submit_with = submit_with
        self.strict_placement = strict_placement
        #: The URLs of the links by their XCom keys. None: an earlier process has pushed them, as XComs.
        self.tf_yarn_links: dict[str, str] | None = {}
        #: The job's input and output path, once they are known.
        self.job_paths: tuple[str | None, str | None] | None = None
        #: Changed by `on_kill`.
        self.kill_state = KillState()
        #: Whether something else than Airflow's supervisor requests the kill.
        self._kill_confirmed = False
        self._execution: TaskExecution | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of the job by the names of ``ytf-submit``."""
        return _by_job_names({option: getattr(self, option) for option in OPERATOR_OPTIONS})

    def render_texts(self, document: Any, context: Any) -> Any:
        """Return a document with its texts rendered, as texts also in a DAG with ``render_template_as_native_obj``."""
        return self.render_template(document, context, self._text_environment())

    def _text_environment(self) -> Any:
        dag = self.get_dag()
        return self.get_template_env() if dag is None else dag.get_template_env(force_sandboxed=True)

    def _do_render_template_fields(
        self, parent: Any, template_fields: Any, context: Any, jinja_env: Any, seen_oids: set[int]
    ) -> None:
        """Render the templates.

        In a DAG with ``render_template_as_native_obj`` Airflow would make a number of the text ``1.10``, template or
        not. Of an option only a whole template may become something else: a list, a mapping, None.
        """
        render = super()._do_render_template_fields
        if parent is not self or not isinstance(jinja_env, NativeEnvironment):
            return render(parent, template_fields, context, jinja_env, seen_oids)
        texts = self._text_environment()
        for field in template_fields:
            given, option = getattr(self, field), field in TensorFlowYarnOperator.template_fields
            whole = isinstance(given, str) and _is_rendered_later(given)
            render(self, (field,), context, texts if option and not whole else jinja_env, seen_oids)
            if option and whole and not isinstance(getattr(self, field), Mapping | list | set | None):
                setattr(self, field, given)
                render(self, (field,), context, texts, seen_oids)

    def _render(self, template: Any, context: Any, dag: Any = None) -> Any:
        if isinstance(template.environment, NativeEnvironment):
            return super()._render(template, context, dag)
        return render_template_to_string(template, context)

    def complete_job(self, context: Any) -> None:
        """Set options that are known only at run time. Called in the Airflow worker before each submission."""

    def task_value(self, report: Mapping[str, Any], context: Any) -> Any:
        """Return the value of a task whose job has succeeded: the report."""
        return report

    def execute(self, context: Any) -> Any:
        """Submit the job, or attach to the running application, and wait for its end."""
        with self._killing_on_ctrl_c():
            value = self._begin(context).run()
        self._execution = None  # a late signal must not kill an application that has ended or continues on purpose
        return value

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> Any:
        """End the task with the report of the application that the trigger's event names."""
        value = self._begin(context, deferred=True).resume(event)
        self._execution = None
        return value

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Continue after the trigger. If the trigger has failed, wait here: its application may still run."""
        self.tf_yarn_links = None
        with self._killing_on_ctrl_c():
            try:
                return super().resume_execution(next_method, next_kwargs, context)
            except (TaskDeferralError, TaskDeferralTimeout) as error:
                if has_timed_out(error):
                    return self._begin(context, deferred=True).time_out()
                self.log.error("the trigger failed (%s); this Airflow worker waits instead", error)
                return self._begin(context, deferred=True).run(deferrable=False)

    def on_kill(self) -> None:
        """Kill the application within five seconds; called in a signal handler."""
        if self._execution is not None:
            self._execution.kill(confirmed=self._kill_confirmed)
        else:  # for an execution that does not exist yet: its imports alone take a second
            self.kill_state = self.kill_state.on_signal(leaves=self.kill_policy == "leave", has_application=False)

    def get_openlineage_facets_on_start(self) -> Any:
        """Return the input and the output path as datasets; called by Airflow's provider for OpenLineage."""
        from .lineage import lineage_of

        document = self.spec if isinstance(self.spec, Mapping) else getattr(self.spec, "__dict__", {})
        return lineage_of(*self.job_paths or ({**document, **self.options()}.get(name) for name in ("input", "output")))

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Return the datasets of the job that has run: a file or a function may have named them."""
        return self.get_openlineage_facets_on_start()

    @contextmanager
    def _killing_on_ctrl_c(self) -> Iterator[None]:
        """Kill the application on Ctrl-C: ``airflow dags test`` and ``tasks test`` do not call `on_kill`."""
        try:
            yield
        except AirflowTaskTimeout:
            self._kill_confirmed = True  # Airflow calls `on_kill` next
            raise
        except KeyboardInterrupt:
            self._kill_confirmed = True
            self.on_kill()
            raise

    def _begin(self, context: Any, *, deferred: bool = False) -> "TaskExecution":
        from .execution import TaskExecution

        self._execution = execution = TaskExecution(self, context, deferred=deferred)
        return execution


def argument_faults(given: Mapping[str, Any]) -> list[str]:
    """Return the faults of the arguments whose values must have one type."""
    return [
        f"{name}: {given[name]!r} {fault}"
        for name, (fits, fault) in _TYPES.items()
        if name in given and not fits(given[name])
    ]


def _faults(given: Mapping[str, Any], needs_job: bool) -> list[str]:
    """Return the faults of arguments whose templates are not rendered yet."""
    known = set(inspect.signature(BaseOperator.__init__).parameters)
    faults = []
    for name in given["kwargs"]:
        if name in RENAMED and name not in known:
            faults.append(f"{name}: Airflow uses this name itself; here the option is called {RENAMED[name]}")
        elif name == "durable":  # of operators with Airflow's ResumableJobMixin
            faults.append(f"{name}: leave it out; each retry attaches to the application that runs")
        elif name not in known and not name.startswith("_airflow"):
            hint = (
                f" (did you mean {ALIASES[name]!r}?)"
                if name in ALIASES
                else did_you_mean(name, (*OPERATOR_OPTIONS, *given, *sorted(known)))
            )
            faults.append(f"{name}: unknown option{hint}")
    spec, task_command = given["spec"], given["task_command"]
    if spec is not None and task_command is not None:
        faults.append("spec and task_command: both say what the job runs; give only one of them")
    if needs_job and spec is None and given["cluster_requirement"] is None:
        faults.append(f"{_NO_JOB}: give spec, or cluster_requirement and task_command")
    elif needs_job and spec is None and task_command is None and given["command"] is None:
        faults.append("task_command: missing; give it, or command with one command per task type")
    for name, choices in _CHOICES.items():
        value = given[name]
        if not (value in choices or (value is None and name != "on_kill") or (isinstance(value, str) and "{" in value)):
            faults.append(f"{name}: {value!r} is not one of {', '.join(choices)}{did_you_mean(str(value), choices)}")
    faults += argument_faults(given)
    streamed = _as_list(given["stream_logs"])
    wrong = [name for name in streamed if not (isinstance(name, str) and (name in ("chief", "all") or ":" in name))]
    if wrong:
        faults.append(f"stream_logs: {', '.join(map(repr, wrong))} is not chief, all, or a task such as worker:*")
    if given["model_asset"] is not None and not given["wait_for_completion"]:
        faults.append("model_asset: a task with wait_for_completion=False ends before the model exists")
    if given["lease"] and not given["wait_for_completion"]:
        faults.append("lease: a task with wait_for_completion=False does not stay to move it")
    lifetime = given["yarn_lifetime"]
    if not (lifetime is None or lifetime == "auto" or isinstance(lifetime, timedelta) or _is_number(lifetime)):
        faults.append(f"yarn_lifetime: {lifetime!r} is not 'auto', a number of seconds, a timedelta or None")
    elif lifetime not in (None, "auto") and lifetime <= (timedelta() if isinstance(lifetime, timedelta) else 0):
        faults.append(f"yarn_lifetime: {lifetime!r} is not above 0; None leaves the job's own deadlines")
    codes = () if given["skip_on_exit_code"] is None else given["skip_on_exit_code"]
    if not all(_is_whole(code) for code in (codes if isinstance(codes, Collection) else (codes,))):
        faults.append(f"skip_on_exit_code: {codes!r} is neither an exit code nor a collection of exit codes")
    return faults


def _is_parsed_for_another(operator: BaseOperator) -> bool:
    """Return whether Airflow parses the file for another task, as at the start of each task."""
    context, dag = get_parsing_context(), operator.get_dag()
    another_dag = dag is not None and context.dag_id not in (None, dag.dag_id)
    return another_dag or context.task_id not in (None, operator.task_id)


def _check_job(given: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the faults of a job that needs no template to be known, and warnings of probable mistakes."""
    queue, usual = given["kwargs"].get("queue"), conf.get("operators", "default_queue", fallback="default")
    job_warnings, options = [], {}
    if queue not in (None, usual) and given["yarn_queue"] is None:
        job_warnings.append(f"queue={queue!r} names a queue of Airflow's executor; YARN's queue is yarn_queue")
    for option in ("spec", *OPERATOR_OPTIONS):
        if not _is_rendered_later(given[option]):
            options[option] = given[option]
        elif option in _FREE_TEXT_OPTIONS:
            options[option] = _sample(option, given[option])
        elif option not in _INDEPENDENT_OPTIONS:
            return [], job_warnings
    spec = options.pop("spec")
    if isinstance(spec, str):  # a file of the worker
        return [], job_warnings
    from ..job.request import find_job_warnings
    from .job import operator_job

    try:
        job = operator_job(_by_job_names(options), spec, None, None, names=RENAMED)
    except SpecInvalid as error:
        return [str(fault) for fault in error.faults], job_warnings
    return [], [*job_warnings, *find_job_warnings(job)]


def _sample(option: str, value: Any) -> str:
    """Return what a value with templates may be when they are rendered; different templates become different words."""
    text = re.sub(r"\{\{(.*?)\}\}", lambda found: re.sub(r"\W+", "_", found[1].strip())[:40], str(value))
    begins = option in ("input", "output_path") and not re.match(r"\w+://|/", str(value))
    return f"hdfs:///template/{option}" if begins or _is_rendered_later(text) else text


def _is_rendered_later(value: Any) -> bool:
    """Return whether a value has a template, or is the result of another task."""
    if isinstance(value, str):
        return any(mark in value for mark in ("{{", "{%", "{#"))
    if isinstance(value, Mapping):
        return any(map(_is_rendered_later, (*value, *value.values())))
    if isinstance(value, list | tuple | set):
        return any(map(_is_rendered_later, value))
    return hasattr(value, "operator") or hasattr(value, "resolve")


def _by_job_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, by the names of ``ytf-submit``."""
    return {_OPTION_NAMES.get(option, option): value for option, value in values.items() if value is not None}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple | set) else [value]


def _is_asset(value: Any) -> bool:
    if isinstance(value, str):
        try:
            Asset(value)
        except ValueError:  # empty, too long, or not ASCII
            return False
    return isinstance(value, str | Asset | None)


#: The check of an argument's type, and the description of that type for its fault.
_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "application_id": (lambda value: isinstance(value, str) or _is_rendered_later(value), "is not a text"),
    "tf_yarn_conn_id": (lambda value: isinstance(value, str | None), "is not a text"),
    **dict.fromkeys(
        ("deferrable", "wait_for_completion", "strict_placement"),
        (lambda value: isinstance(value, bool), "is neither True nor False"),
    ),
    "model_asset": (_is_asset, "is neither an asset nor its URI"),
    "poll_interval": (lambda value: _is_number(value) and value > 0, "is not a number of seconds above 0"),
    "log_tail_lines": (_is_whole, "is not a whole number"),
}
