"""``@task.tf_yarn``: a Python function that returns the command, or further options, of a training.

The function runs in the Airflow worker before the submission. Its value adds to the arguments of the decorator.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..errors import did_you_mean
from .operator import OPERATOR_OPTIONS, TensorFlowYarnOperator
from .versions import DecoratedOperator, TaskDecorator, context_merge, determine_kwargs, task_decorator_factory

#: Options that the page of rendered templates does not show if the function has returned them: Airflow masks secrets in
#: templates, but not secrets in a function's value.
_HIDDEN = ("env", "spec")


class _TfYarnDecoratedOperator(DecoratedOperator, TensorFlowYarnOperator):
    """An operator that calls a function for the command of the job, or for a mapping of options."""

    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *TensorFlowYarnOperator.template_fields)
    template_fields_renderers = {**DecoratedOperator.template_fields_renderers,
                                 **TensorFlowYarnOperator.template_fields_renderers}  # fmt: skip
    custom_operator_name = "@task.tf_yarn"
    #: The options that the function returns are rendered later than the others.
    overwrite_rtif_after_execution = True
    _needs_job = False
    _called = False

    def __init__(self, *, python_callable: Callable[..., Any], op_args: Collection[Any] | None = None,
                 op_kwargs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)

    def complete_job(self, context: Any) -> None:
        """Call the function, once in a process. After a deferral call it only if the job is submitted again."""
        if self._called:
            return
        self._called = True
        context_merge(context, self.op_kwargs)
        kwargs = determine_kwargs(self.python_callable, self.op_args, context)
        returned = as_options(self.python_callable(*self.op_args, **kwargs))
        for name, value in returned.items():
            setattr(self, name, value)
        # Only these: the arguments of the decorator are rendered already, and may have braces in their values now.
        self._do_render_template_fields(self, tuple(returned), context, self.get_template_env(), set())
        shown = [name for name in (*self.template_fields, *returned) if name not in returned or name not in _HIDDEN]
        self.template_fields = tuple(dict.fromkeys(shown))
        if command := self.options().get("task_command"):
            self.log.info("task_command: %s", command)


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
    from ..errors import SpecInvalid

    if isinstance(returned, str) and returned.strip():
        return {"task_command": returned}
    if not isinstance(returned, Mapping) or not returned:
        raise SpecInvalid(f"@task.tf_yarn: the function must return a task_command, or a mapping of options, "
                          f"not {returned!r:.100}")
    known = ("spec", *OPERATOR_OPTIONS)
    faults = [f"{name}: unknown option{did_you_mean(str(name), known)}" for name in returned if name not in known]
    if faults:
        raise SpecInvalid("@task.tf_yarn: the function returned " + "; ".join(faults))
    return dict(returned)


def tf_yarn_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> TaskDecorator:
    """Turn a function that returns a task_command, or a mapping of options, into a task.

    Parameters
    ----------
    python_callable : callable
    **kwargs
        Arguments of `TensorFlowYarnOperator`.
    """
    # The value of the task is the report. The annotation of the function must not split it into several XComs.
    kwargs.setdefault("multiple_outputs", False)
    return task_decorator_factory(python_callable=python_callable,
                                  decorated_operator_class=_TfYarnDecoratedOperator, **kwargs)
