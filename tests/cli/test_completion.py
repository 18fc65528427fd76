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
    function = f"_{words[0].replace('-', '_')}_completion"
    script = (
        f'eval "$(ytf completion bash)"; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; '
        f'{function} {words[0]}; echo "${{COMPREPLY[@]}}"'
    )
    done = run(["bash", "-c", script], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert set(done.stdout.split()) == expected, done.stderr


@pytest.mark.parametrize(
    "shell, line", [("zsh", "#compdef ytf-submit"), ("fish", "complete --no-files --command ytf-submit")]
)
def test_completion_is_for_zsh_and_fish_too(shell, line):
    assert line in run(YTF, "completion", shell).stdout


@pytest.mark.slow
@pytest.mark.parametrize("shell, name", [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/config.fish")])
def test_completion_is_added_once_to_the_shells_own_file(tmp_path, shell, name):
    words, env = ("completion", "--install-completion"), {"HOME": str(tmp_path), "SHELL": f"/usr/bin/{shell}"}
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("first")
    assert f"added to {file}" in run(YTF, *words, env=env).stderr
    assert "has the line already" in run(YTF, *words, env=env).stderr
    first, line = file.read_text().splitlines()
    assert first == "first" and f"ytf completion {shell}" in line
