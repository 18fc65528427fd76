"""``@task.tf_yarn``: a function that says what is trained, as a task.

The function runs in the worker, before the submission; with what it returns the arguments of the
decorator are completed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from airflow.sdk.bases.decorator import DecoratedOperator, TaskDecorator, determine_kwargs, task_decorator_factory
from airflow.sdk.definitions.context import context_merge

from .operator import OPTIONS, TensorFlowYarnOperator, did_you_mean

#: Options of which the page of rendered templates shows nothing when a function has returned them: Airflow masks the
#: values of a template that it knows as secrets, not those of a program.
_UNSEEN = ("env", "spec")


class _TfYarnDecoratedOperator(DecoratedOperator, TensorFlowYarnOperator):
    """Calls a function for the rest of the job: its command, or a mapping of options."""

    template_fields: Sequence[str] = (*DecoratedOperator.template_fields, *TensorFlowYarnOperator.template_fields)
    template_fields_renderers = {**DecoratedOperator.template_fields_renderers,
                                 **TensorFlowYarnOperator.template_fields_renderers}  # fmt: skip
    custom_operator_name = "@task.tf_yarn"
    #: What the function has said is rendered later than the rest.
    overwrite_rtif_after_execution = True
    _needs_job = False
    _asked = False

    def __init__(self, *, python_callable: Callable[..., Any], op_args: Collection[Any] | None = None,
                 op_kwargs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)

    def complete_job(self, context: Any) -> None:
        """Ask the function, once in a process: after a deferral only when a further submission is due."""
        if self._asked:
            return
        self._asked = True
        context_merge(context, self.op_kwargs)
        kwargs = determine_kwargs(self.python_callable, self.op_args, context)
        said = as_options(self.python_callable(*self.op_args, **kwargs))
        for name, value in said.items():
            setattr(self, name, value)
        # What the decorator was given is rendered already: a value with braces in it would not survive a second time.
        self._do_render_template_fields(self, tuple(said), context, self.get_template_env(), set())
        shown = [name for name in (*self.template_fields, *said) if name not in said or name not in _UNSEEN]
        self.template_fields = tuple(dict.fromkeys(shown))
        if command := self.options().get("task_command"):
            self.log.info("task_command: %s", command)


def as_options(said: Any) -> dict[str, Any]:
    """Give the arguments of the operator that a function's value stands for.

    Parameters
    ----------
    said : str or mapping
        The task_command, or options by the operator's names, ``spec`` among them.

    Raises
    ------
    SpecInvalid
        It is something else; an option is unknown, all are named.
    """
    from ..errors import SpecInvalid

    if isinstance(said, str) and said.strip():
        return {"task_command": said}
    if not isinstance(said, Mapping) or not said:
        raise SpecInvalid(f"@task.tf_yarn: the function has to return its task_command, or a mapping of options, "
                          f"not {said!r:.100}")
    known = ("spec", *OPTIONS)
    faults = [f"{name}: unknown option{did_you_mean(str(name), known)}" for name in said if name not in known]
    if faults:
        raise SpecInvalid("@task.tf_yarn: the function returned " + "; ".join(faults))
    return dict(said)


def tf_yarn_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> TaskDecorator:
    """Make a task of a function that returns a task_command, or a mapping of options.

    Parameters
    ----------
    python_callable : callable
    **kwargs
        Arguments of `TensorFlowYarnOperator`.
    """
    # The task's value is the report, whatever the function is annotated to return.
    kwargs.setdefault("multiple_outputs", False)
    return task_decorator_factory(python_callable=python_callable,
                                  decorated_operator_class=_TfYarnDecoratedOperator, **kwargs)
