"""``ytf completion``: the shell code that completes the words of ``ytf`` and ``ytf-submit``."""

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ..terminal.output import echo

#: The file in the home directory that each shell reads at its start, and the line that completes words there.
START_LINES = {
    "bash": (".bashrc", 'eval "$(ytf completion bash)"'),
    "zsh": (".zshrc", 'eval "$(ytf completion zsh)"'),
    "fish": (".config/fish/config.fish", "ytf completion fish | source"),
}


@click.command()
@click.argument("shell", type=click.Choice(tuple(START_LINES)), default=lambda: Path(os.environ.get("SHELL", "")).name)
@click.option("--install-completion", "install", is_flag=True, help="Add the line to the shell's own file.")
@click.pass_context
def completion(ctx: click.Context, shell: str, install: bool) -> None:
    """Print the completion of ytf and ytf-submit for a shell; default: that of $SHELL.

    \b
    bash, in ~/.bashrc:                   eval "$(ytf completion bash)"
    zsh, in ~/.zshrc, after compinit:     eval "$(ytf completion zsh)"
    fish, in ~/.config/fish/config.fish:  ytf completion fish | source
    """
    if install:
        _install(shell)
        return
    kind = get_completion_class(shell)
    if kind is None:  # Choice has refused it
        raise click.UsageError(f"click completes nothing for {shell}")
    for program in ("ytf", "ytf-submit"):
        variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
        click.echo(kind(ctx.find_root().command, {}, program, variable).source())


def _install(shell: str) -> None:
    name, line = START_LINES[shell]
    path = Path.home() / name
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if line in text.splitlines():
        echo(f"{path} has the line already")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n")
    echo(f"added to {path}: {line}")
