"""The options of ytf-submit, by their names."""

from tf_yarn_ops.cli.parameters import DESIGN, JOB_OPTIONS, names_of
from tf_yarn_ops.job.request import OPTION_NAMES


def test_every_option_of_the_program_is_one_of_the_request():
    assert {option.name for option in (*DESIGN, *JOB_OPTIONS)} - {"client"} == set(OPTION_NAMES) - {"task_command"}


def test_the_seeds_options_are_there_by_their_names():
    names = {name for option in DESIGN for name in names_of(option)}
    seed = """-r --cluster_requirement -c --task_vcores -m --task_memory -i --input -o --output -s --script -t --tensorboard
              --docker_image -q --queue -n --name --client"""
    assert names == set(seed.split())
