"""Completion of commands and options in shells."""

import os
import shlex

import pytest

from support.programs import SUBMIT, YTF, run


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, expected",
    [
        (("ytf", "minic"), {"minicluster"}),
        (("ytf", "minicluster", "u"), {"up"}),
        (("ytf-submit", "--cluster_r"), {"--cluster_requirement"}),
    ],
)
def test_bash_completes_commands_and_options(words, expected, tmp_path):
    for name, program in (("ytf", YTF), ("ytf-submit", SUBMIT)):
        (tmp_path / name).write_text(f'#!/bin/bash\nexec {shlex.join(map(str, program))} "$@"\n')
        (tmp_path / name).chmod(0o755)
    name = f"_{words[0].replace('-', '_')}"
    function = f"{name}_completion"
    script = (
        f'eval "$({name.upper()}_COMPLETE=bash_source {words[0]})"; COMP_WORDS=({shlex.join(words)}); '
        f"COMP_CWORD={len(words) - 1}; "
        f'{function} {words[0]}; echo "${{COMPREPLY[@]}}"'
    )
    done = run(["bash", "-c", script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert set(done.stdout.split()) == expected, done.stderr


@pytest.mark.parametrize(
    "shell, line", [("zsh", "#compdef ytf-submit"), ("fish", "complete --no-files --command ytf-submit")]
)
def test_completion_is_for_zsh_and_fish_too(shell, line, tmp_path):
    program = tmp_path / "ytf-submit"
    program.write_text(f'#!/bin/bash\nexec {shlex.join(map(str, SUBMIT))} "$@"\n')
    program.chmod(0o755)
    assert line in run([program], env={"_YTF_SUBMIT_COMPLETE": f"{shell}_source"}).stdout
