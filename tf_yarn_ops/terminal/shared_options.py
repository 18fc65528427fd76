"""The options by which each command finds its cluster; each may decorate any command of click."""

import click

RESOURCEMANAGER_OPTION = click.option(
    "--resourcemanager",
    metavar="<URL>",
    help="http://host:8088, comma-separated for several.  [default: YTF_RESOURCEMANAGER, site.yaml, HADOOP_CONF_DIR]",
)
USER_OPTION = click.option(
    "--user",
    metavar="<name>",
    help="Act for this user, as Hadoop's proxyuser settings allow it.  [default: yourself]",
)
VERBOSE_OPTION = click.option("-v", "--verbose", is_flag=True, help="Log each request to stderr.")
