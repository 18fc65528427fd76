from .commands import hadoop

hadoop(prog_name="./dev hadoop")
