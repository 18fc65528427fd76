# Written by docs/tables.py from operator.py and the options of a job.
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from airflow.sdk import XComArg

from .versions import Asset, BaseOperator

RENAMED: Mapping[str, str]
ALIASES: Mapping[str, str]
OPERATOR_OPTIONS: tuple[str, ...]

def argument_faults(given: Mapping[str, Any]) -> list[str]: ...

class TensorFlowYarnOperator(BaseOperator):
    task_command: Any
    framework: Any
    env: Any
    file: Any
    archive: Any
    script: Any
    input: Any
    output_path: Any
    commit: Any
    commit_version: Any
    commit_keep: Any
    mirror: Any
    mirror_input: Any
    environment: Any
    command: Any
    docker_client_config: Any
    docker_runtime: Any
    docker_tmpfs: Any
    docker_delayed_removal: Any
    docker_image: Any
    cluster_requirement: Any
    custom_type: Any
    procs_per_task: Any
    node_label: Any
    task_memory: Any
    task_vcores: Any
    task_gpus: Any
    resource: Any
    hold_port: Any
    name: Any
    yarn_queue: Any
    user: Any
    priority: Any
    tag: Any
    file_system: Any
    am_memory: Any
    am_vcores: Any
    report_log_tail: Any
    tensorboard: Any
    tensorboard_memory: Any
    tensorboard_vcores: Any
    tensorboard_linger: Any
    tensorboard_logdir: Any
    tensorboard_args: Any
    success: Any
    restart: Any
    max_restarts: Any
    max_container_losses: Any
    retry_exit_codes: Any
    fatal_exit_codes: Any
    restart_backoff: Any
    allocation_retries: Any
    memory_growth: Any
    exclude_node_after: Any
    lease: Any
    queue_timeout: Any
    allocation_timeout: Any
    registration_timeout: Any
    heartbeat_timeout: Any
    job_execution_timeout: Any
    total_timeout: Any
    stall_timeout: Any
    stop_grace: Any
    evaluator_grace: Any
    success_grace: Any
    spec: Any
    tf_yarn_conn_id: Any
    deferrable: Any
    poll_interval: Any
    kill_policy: Any
    wait_for_completion: Any
    model_asset: Any
    skip_on_exit_code: Any
    log_tail_lines: Any
    stream_logs: Any
    yarn_lifetime: Any
    submit_with: Any
    strict_placement: Any
    tf_yarn_links: Any
    job_paths: Any
    kill_state: Any
    template_fields: Collection[str]
    template_ext: Sequence[str]
    renamed_options: Mapping[str, str]
    def __init__(
        self,
        *,
        spec: Any = ...,
        tf_yarn_conn_id: str | None = ...,
        deferrable: bool = ...,
        poll_interval: float = ...,
        on_kill: str = ...,
        wait_for_completion: bool = ...,
        model_asset: Asset | str | None = ...,
        skip_on_exit_code: int | Collection[int] | None = ...,
        log_tail_lines: int = ...,
        stream_logs: str | Sequence[str] | None = ...,
        yarn_lifetime: Any = ...,
        submit_with: str | None = ...,
        strict_placement: bool = ...,
        task_command: str | XComArg | None = ...,
        framework: Literal["tensorflow", "pytorch", "jax", "horovod", "none"] | str | XComArg | None = ...,
        env: str | Mapping[str, Any] | Sequence[str] | XComArg | None = ...,
        file: str | Mapping[str, str] | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        archive: str | Mapping[str, str] | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        script: str | XComArg | None = ...,
        input: str | XComArg | None = ...,
        output_path: str | XComArg | None = ...,
        commit: Literal["off", "new", "replace", "version"] | str | XComArg | None = ...,
        commit_version: int | str | XComArg | None = ...,
        commit_keep: int | str | XComArg | None = ...,
        mirror: Literal["off", "chief", "all"] | str | XComArg | None = ...,
        mirror_input: int | str | XComArg | None = ...,
        environment: str | XComArg | None = ...,
        command: str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        docker_client_config: str | XComArg | None = ...,
        docker_runtime: str | XComArg | None = ...,
        docker_tmpfs: str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        docker_delayed_removal: bool | str | XComArg | None = ...,
        docker_image: str | XComArg | None = ...,
        cluster_requirement: str | Mapping[str, Any] | XComArg | None = ...,
        custom_type: str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        procs_per_task: int | str | XComArg | None = ...,
        node_label: str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        task_memory: int | str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        task_vcores: int | str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        task_gpus: int | str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        resource: str | Mapping[str, int | str] | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        hold_port: bool | str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        name: str | XComArg | None = ...,
        yarn_queue: str | XComArg | None = ...,
        user: str | XComArg | None = ...,
        priority: int | str | XComArg | None = ...,
        tag: str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        file_system: str | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        am_memory: int | str | XComArg | None = ...,
        am_vcores: int | str | XComArg | None = ...,
        report_log_tail: int | str | XComArg | None = ...,
        tensorboard: bool | str | XComArg | None = ...,
        tensorboard_memory: int | str | XComArg | None = ...,
        tensorboard_vcores: int | str | XComArg | None = ...,
        tensorboard_linger: float | str | XComArg | None = ...,
        tensorboard_logdir: str | XComArg | None = ...,
        tensorboard_args: str | XComArg | None = ...,
        success: Literal["all_workers", "chief"] | str | XComArg | None = ...,
        restart: Literal["never", "task", "cluster"] | str | XComArg | None = ...,
        max_restarts: int | str | XComArg | None = ...,
        max_container_losses: int | str | XComArg | None = ...,
        retry_exit_codes: int | str | Sequence[int] | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        fatal_exit_codes: int | str | Sequence[int] | Sequence[str] | Mapping[str, Any] | XComArg | None = ...,
        restart_backoff: float | str | XComArg | None = ...,
        allocation_retries: int | str | XComArg | None = ...,
        memory_growth: float | str | XComArg | None = ...,
        exclude_node_after: int | str | XComArg | None = ...,
        lease: float | str | XComArg | None = ...,
        queue_timeout: float | str | XComArg | None = ...,
        allocation_timeout: float | str | XComArg | None = ...,
        registration_timeout: float | str | XComArg | None = ...,
        heartbeat_timeout: float | str | XComArg | None = ...,
        job_execution_timeout: float | str | XComArg | None = ...,
        total_timeout: float | str | XComArg | None = ...,
        stall_timeout: float | str | XComArg | None = ...,
        stop_grace: float | str | XComArg | None = ...,
        evaluator_grace: float | str | XComArg | None = ...,
        success_grace: float | str | XComArg | None = ...,
        **kwargs: Any,
    ) -> None: ...
    def options(self) -> dict[str, Any]: ...
    def render_texts(self, document: Any, context: Any) -> Any: ...
    def complete_job(self, context: Any) -> None: ...
    def task_value(self, report: Mapping[str, Any], context: Any) -> Any: ...
    def execute(self, context: Any) -> Any: ...
    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> Any: ...
    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any: ...
    def on_kill(self) -> None: ...
    def get_openlineage_facets_on_start(self) -> Any: ...
    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any: ...
