"""The cluster that JAX detects in a job; `tests/examples/test_frameworks.py` trains with it."""

import sys
from types import SimpleNamespace

import pytest

from tf_yarn_ops.runtime.program import jax_cluster


@pytest.mark.parametrize(
    "variables", [{}, {"JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "3", "JAX_COORDINATOR_ADDRESS": "h:1"}]
)
def test_job_comes_before_all_clusters_that_jax_knows(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    class ClusterEnv:
        _cluster_types = ["slurm"]

        def __init_subclass__(cls):
            cls._cluster_types.append(cls)

    monkeypatch.setitem(sys.modules, "jax._src.clusters.cluster", SimpleNamespace(ClusterEnv=ClusterEnv))
    jax_cluster.register(None)
    *found, last = ClusterEnv._cluster_types
    assert last == "slurm" and len(found) == bool(variables)
    for kind in found:
        assert kind.is_env_present() and kind.get_coordinator_address(timeout_secs=1) == "h:1"
        assert (kind.get_process_id(), kind.get_process_count()) == (1, 3)
