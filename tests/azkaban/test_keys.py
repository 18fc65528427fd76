"""From the keys of a .job to a job: the table, TonY's names, byte-for-byte values, and every fault by its key."""

from tf_yarn_ops.azkaban.keys import ALL_KEYS, find_key
from tf_yarn_ops.declaration import AZKABAN
from tf_yarn_ops.job.options import options_of
from tf_yarn_ops.job.request import OPTION_NAMES


# --- the table ----------------------------------------------------------------------------------
def test_every_key_is_found_by_its_own_name():
    for key in ALL_KEYS:
        name = key.name.replace("<type>", "worker").replace("<index>", "0").replace("<n>", "1").replace("<NAME>", "A")
        assert find_key(name).key is key, name


def test_every_option_of_a_request_has_a_key():
    mapped = {key.option.name for key in ALL_KEYS}
    assert set(OPTION_NAMES) - mapped == {"user"}  # a job can't choose its user
    assert mapped >= {*options_of(AZKABAN)}


def test_variables_come_before_task_types():
    assert find_key("tf.env.command").places == {"NAME": "command"}
    assert find_key("tf.worker.env.a.b").places == {"type": "worker", "NAME": "a.b"}


# --- the program --------------------------------------------------------------------------------
# --- faults -------------------------------------------------------------------------------------
# --- TonY ---------------------------------------------------------------------------------------
# --- the site -----------------------------------------------------------------------------------
