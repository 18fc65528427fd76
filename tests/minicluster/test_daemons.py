"""The daemons' command lines, environment and logs, and how they are found and stopped."""

from support.machines import make_settings
from tf_yarn_ops.minicluster import daemons
from tf_yarn_ops.minicluster.daemon_settings import OPENS


def test_command_lines():
    settings = make_settings(nodes=2)
    commands = {d.name: daemons.build_command(settings, d) for d in settings.list_daemons()}
    assert list(commands) == ["nn", "dn", "rm", "nm", "nm2"]
    heaps = {name: next(flag for flag in command if flag.startswith("-Xmx")) for name, command in commands.items()}
    assert heaps == {"nn": "-Xmx256m", "dn": "-Xmx192m", "rm": "-Xmx384m", "nm": "-Xmx384m", "nm2": "-Xmx384m"}
    for name, command in commands.items():
        assert command[0] == "/opt/jdk/bin/java"
        assert {"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dproc_{name}"} <= set(command)
        assert "-Dytf.minicluster=/clusters/one" in command
        assert (OPENS in command) == (name in ("rm", "nm", "nm2"))


def test_daemons_do_not_see_another_hadoop():
    callers = {
        "PATH": "/usr/bin", "TZ": "UTC", "HADOOP_USER_NAME": "eve", "HADOOP_CONF_DIR": "/etc/hadoop", "CLASSPATH": "x",
        "YARN_CONF_DIR": "/etc", "JAVA_TOOL_OPTIONS": "-Xint", "JDK_JAVA_OPTIONS": "-Xint",
    }  # fmt: skip
    seen = daemons.build_environment(make_settings(), callers)
    assert seen.items() >= {
        "TZ": "UTC", "LANG": "C.UTF-8", "HADOOP_CONF_DIR": "/clusters/one/conf", "JAVA_HOME": "/opt/jdk",
        "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }.items()  # fmt: skip
    assert not {"HADOOP_USER_NAME", "CLASSPATH", "YARN_CONF_DIR", "JAVA_TOOL_OPTIONS"} & seen.keys()


def test_log_tail_is_short_and_names_the_file(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rm.log").write_bytes(b"\xff\n" * 20000 + b"the cause\n")
    tail = daemons.log_tail(tmp_path, "rm")
    assert f"{tmp_path}/logs/rm.log" in tail
    assert tail.endswith("  the cause")
    assert len(tail.splitlines()) == 13
