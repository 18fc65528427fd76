"""The Kerberos realms of a secured cluster: their names and files, and the Hadoop properties that use them."""

from dataclasses import dataclass
from pathlib import Path

REALM = "MINICLUSTER.LOCAL"
#: Users with a principal and a home directory. The last one may act for the others.
USERS = ("alice", "bob", "gateway")
PROXY_USER = "gateway"
#: The realm of people whom the cluster's realm trusts, as a directory of a company is one.
CORPORATE_REALM = "CORP.LOCAL"
#: Its users. A rule makes the first three alice, bob and gateway of the cluster; no rule fits the last one.
CORPORATE_USERS = ("corp-alice", "corp-bob", "corp-gateway", "stranger")
#: Hadoop's rules for the short names of principals.
RULES = rf"RULE:[1:$1@$0](corp-.*@{CORPORATE_REALM})s/corp-|@.*//g" "\nDEFAULT"
#: The accounts of the daemons, and the service of their pages.
HDFS, YARN, HTTP = SERVICES = ("hdfs", "yarn", "HTTP")


@dataclass(frozen=True)
class Realm:
    """Names and files of both realms in one folder.

    Attributes
    ----------
    folder : Path
    hosts : tuple of str
        The hosts that services run on, by full name.
    """

    folder: Path
    hosts: tuple[str, ...] = ("localhost",)

    @property
    def krb5_conf(self) -> Path:
        """The configuration of daemons and clients."""
        return self.folder / "krb5.conf"

    @property
    def corporate_conf(self) -> Path:
        """The configuration of clients whose default realm is the other one."""
        return self.folder / "krb5-corporate.conf"

    @property
    def web_secret(self) -> Path:
        """The file with the secret by which the daemons sign the cookies of their pages."""
        return self.folder / "http-secret"

    def keytab(self, name: str) -> Path:
        """Return the file with the keys of a user or service."""
        return self.folder / f"{name}.keytab"

    def principal(self, name: str) -> str:
        """Return the principal of a user or service; on several hosts each one replaces _HOST by its own name."""
        first, *others = self.principals(name)
        return first if not others else f"{name}/_HOST@{REALM}"

    def principals(self, name: str) -> tuple[str, ...]:
        """Return all principals of a user, or of a service on each host."""
        if name in SERVICES:
            return tuple(f"{name}/{host}@{REALM}" for host in self.hosts)
        return (f"{name}@{CORPORATE_REALM if name in CORPORATE_USERS else REALM}",)


def build_kerberos_properties(realm: Realm) -> dict[str, dict[str, str]]:
    """Return the properties of Kerberos by file name."""
    web, web_keytab = realm.principal(HTTP), str(realm.keytab(HTTP))
    hdfs, hdfs_keytab = realm.principal(HDFS), str(realm.keytab(HDFS))
    yarn, yarn_keytab = realm.principal(YARN), str(realm.keytab(YARN))
    return {
        "core-site.xml": {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.security.auth_to_local": RULES,
            "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": web,
            "hadoop.http.authentication.kerberos.keytab": web_keytab,
            "hadoop.http.authentication.signature.secret.file": str(realm.web_secret),
            f"hadoop.proxyuser.{PROXY_USER}.hosts": "*",
            f"hadoop.proxyuser.{PROXY_USER}.users": ",".join(user for user in USERS if user != PROXY_USER),
            # The users do not exist in the operating system.
            "hadoop.user.group.static.mapping.overrides":
                "dr.who=;hdfs=hadoop;yarn=hadoop;HTTP=hadoop;" + ";".join(f"{user}=users" for user in USERS),
        },
        "hdfs-site.xml": {
            "dfs.block.access.token.enable": "true",
            "dfs.namenode.kerberos.principal": hdfs,
            "dfs.namenode.keytab.file": hdfs_keytab,
            "dfs.namenode.kerberos.internal.spnego.principal": web,
            "dfs.datanode.kerberos.principal": hdfs,
            "dfs.datanode.keytab.file": hdfs_keytab,
            "dfs.web.authentication.kerberos.principal": web,
            "dfs.web.authentication.kerberos.keytab": web_keytab,
            "dfs.data.transfer.protection": "authentication",
            # A DataNode that is not started by root has no ports below 1024.
            "ignore.secure.ports.for.testing": "true",
        },
        "yarn-site.xml": {
            # The form that most clusters have: clients replace _HOST by the name of the ResourceManager's host.
            "yarn.resourcemanager.principal": yarn.replace("/localhost@", "/_HOST@"),
            "yarn.resourcemanager.keytab": yarn_keytab,
            "yarn.resourcemanager.webapp.spnego-principal": web,
            "yarn.resourcemanager.webapp.spnego-keytab-file": web_keytab,
            "yarn.nodemanager.principal": yarn,
            "yarn.nodemanager.keytab": yarn_keytab,
            "yarn.nodemanager.webapp.spnego-principal": web,
            "yarn.nodemanager.webapp.spnego-keytab-file": web_keytab,
            "yarn.acl.enable": "true",
            "yarn.admin.acl": "yarn",
        },
        "capacity-scheduler.xml": {
            # A blank means nobody. Users then cannot kill applications of others.
            "yarn.scheduler.capacity.root.acl_administer_queue": " ",
            "yarn.scheduler.capacity.root.acl_submit_applications": " ",
            "yarn.scheduler.capacity.root.default.acl_administer_queue": " ",
            "yarn.scheduler.capacity.root.default.acl_submit_applications": "*",
            "yarn.scheduler.capacity.root.low.acl_administer_queue": " ",
            "yarn.scheduler.capacity.root.low.acl_submit_applications": "*",
        },
    }  # fmt: skip
