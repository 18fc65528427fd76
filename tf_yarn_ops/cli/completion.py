"""``ytf completion``: the shell code that completes the words of ``ytf`` and ``ytf-submit``."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion of ytf and ytf-submit for a shell.

    \b
    bash, in ~/.bashrc:                   eval "$(ytf completion bash)"
    zsh, in ~/.zshrc, after compinit:     eval "$(ytf completion zsh)"
    fish, in ~/.config/fish/config.fish:  ytf completion fish | source
    """
    kind = get_completion_class(shell)
    if kind is None:  # Choice has refused it
        raise click.UsageError(f"click completes nothing for {shell}")
    for program in ("ytf", "ytf-submit"):
        variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
        click.echo(kind(ctx.find_root().command, {}, program, variable).source())
