"""``@task.tf_yarn``: a Python function that trains in the tasks of a job; its value is the XCom.

``@task.tf_yarn_cmd``: a function that runs in the Airflow worker before the submission, and returns the command or
further options of a training.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import signature
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import SpecInvalid, did_you_mean
from ..runtime.common.masking import mask_command
from .operator import OPERATOR_OPTIONS, TensorFlowYarnOperator
from .versions import DecoratedOperator, TaskDecorator, context_merge, determine_kwargs, task_decorator_factory

#: Options that the page of rendered templates does not show if the function has returned them: Airflow masks secrets in
#: templates, but not secrets in a function's value.
_HIDDEN = ("env", "spec")


class _TfYarnDecoratedOperator(DecoratedOperator, TensorFlowYarnOperator):
    """An operator that a function completes."""

    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *TensorFlowYarnOperator.template_fields)
    template_fields_renderers = {**DecoratedOperator.template_fields_renderers,
                                 **TensorFlowYarnOperator.template_fields_renderers}  # fmt: skip
    _needs_job = False
    #: Options that the operator can't have.
    _refused: tuple[str, ...] = ()
    _called = False

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)
        self._given = frozenset(op_kwargs or ())
        if refused := [name for name in self._refused if kwargs.get(name) not in (None, True)]:
            raise ValueError(
                f"{self.task_id}: {', '.join(refused)}: @task.tf_yarn runs the function, and waits for "
                "its value; @task.tf_yarn_cmd takes this option"
            )

    def _arguments(self, context: Any) -> Mapping[str, Any] | None:
        """Return the keyword arguments of the function at the first call in a process, None afterwards."""
        if self._called:
            return None
        self._called = True
        context_merge(context, self.op_kwargs)
        return determine_kwargs(self.python_callable, self.op_args, context)


class _FunctionOperator(_TfYarnDecoratedOperator):
    """An operator that sends a function to the tasks of the job."""

    custom_operator_name = "@task.tf_yarn"
    _refused = ("task_command", "command", "wait_for_completion")
    _folder: TemporaryDirectory[str] | None = None

    def execute(self, context: Any) -> Any:
        """Submit the job as any operator does, and leave no file with the arguments on the worker."""
        try:
            return super().execute(context)
        finally:
            self._clean()

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Continue after the trigger; it may submit the job again."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        finally:
            self._clean()

    def _clean(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def complete_job(self, context: Any) -> None:
        """Pack the function, once in a process. After a deferral this happens only if the job is submitted again."""
        if (kwargs := self._arguments(context)) is None:
            return
        from ..launch.function import FUNCTION_COMMAND, pack_function
        from ..runtime.common.contract import FUNCTION_FOLDER

        # Of Airflow's context only what the function names: most of the rest can't travel.
        named = self._given | set(signature(self.python_callable).parameters)
        self._folder = TemporaryDirectory(prefix="ytf-function-")
        archive = pack_function(
            self.python_callable,
            tuple(self.op_args),
            {name: value for name, value in kwargs.items() if name in named},
            self._folder.name,
        )
        given: Any = vars(self).get("archive") or {}
        if isinstance(given, Mapping):
            given = [f"{name}={source}" for name, source in given.items()]
        self.archive = [*([given] if isinstance(given, str) else given), f"{FUNCTION_FOLDER}={archive}"]
        self.task_command = FUNCTION_COMMAND

    def task_value(self, report: Mapping[str, Any], context: Any) -> Any:
        """Return the value of the function; the report is the XCom ``tf_yarn_status``."""
        if self.do_xcom_push:
            context["ti"].xcom_push("tf_yarn_status", report)
        from ..launch.function import returned_value

        return returned_value(report["metrics"])


class _CommandOperator(_TfYarnDecoratedOperator):
    """An operator that calls a function for the command of the job, or for a mapping of options."""

    custom_operator_name = "@task.tf_yarn_cmd"
    #: The options that the function returns are rendered later than the others.
    overwrite_rtif_after_execution = True

    def complete_job(self, context: Any) -> None:
        """Call the function, once in a process. After a deferral this happens only if the job is submitted again."""
        if (kwargs := self._arguments(context)) is None:
            return
        returned = as_options(self.python_callable(*self.op_args, **kwargs))
        for name, value in returned.items():
            setattr(self, name, value)
        # Only these: the arguments of the decorator are rendered already, and may have braces in their values now.
        self._do_render_template_fields(self, tuple(returned), context, self.get_template_env(), set())
        shown = [name for name in (*self.template_fields, *returned) if name not in returned or name not in _HIDDEN]
        self.template_fields = tuple(dict.fromkeys(shown))
        if command := self.options().get("task_command"):
            self.log.info("task_command: %s", mask_command(str(command)))


def as_options(returned: Any) -> dict[str, Any]:
    """Return the value of a function as arguments of the operator.

    Parameters
    ----------
    returned : str or mapping
        The task_command, or options by their names in the operator, including ``spec``.

    Raises
    ------
    SpecInvalid
        The value is neither, or has unknown options; all of them are listed.
    """
    if isinstance(returned, str) and returned.strip():
        return {"task_command": returned}
    if not isinstance(returned, Mapping) or not returned:
        raise SpecInvalid(
            f"@task.tf_yarn_cmd: the function must return a task_command, or a mapping of options, "
            f"not {returned!r:.100}"
        )
    known = ("spec", *OPERATOR_OPTIONS)
    faults = [f"{name}: unknown option{did_you_mean(str(name), known)}" for name in returned if name not in known]
    if faults:
        raise SpecInvalid("@task.tf_yarn_cmd: the function returned " + "; ".join(faults))
    return dict(returned)


def tf_yarn_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> TaskDecorator:
    """Turn a function into a task that calls it on YARN; the value of the chief's function is the XCom.

    Parameters
    ----------
    python_callable : callable
        As in `tf_yarn_ops.run`. A parameter ``context`` needs a default.
    **kwargs
        Arguments of `TensorFlowYarnOperator`, without a command.
    """
    return _decorate(_FunctionOperator, python_callable, kwargs)


def tf_yarn_cmd_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> TaskDecorator:
    """Turn a function that returns a task_command, or a mapping of options, into a task.

    Parameters
    ----------
    python_callable : callable
    **kwargs
        Arguments of `TensorFlowYarnOperator`.
    """
    return _decorate(_CommandOperator, python_callable, kwargs)


def _decorate(
    operator: type[_TfYarnDecoratedOperator], python_callable: Callable[..., Any] | None, kwargs: dict[str, Any]
) -> TaskDecorator:
    # The annotation of the function must not split a report, or a value whose names nobody knows, into several XComs.
    kwargs.setdefault("multiple_outputs", False)
    return task_decorator_factory(python_callable=python_callable, decorated_operator_class=operator, **kwargs)
