"""The RSA keys that are made before Java starts, in the files and in a real Java."""

import base64
import os
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from tf_yarn_ops.minicluster import throwaway_keys
from tf_yarn_ops.minicluster.class_archive import class_path, own_jar
from tf_yarn_ops.minicluster.configuration import Settings

PROVIDERS = "#\nsecurity.provider.1=SUN\n#security.provider.9=Old\nsecurity.provider.2=SunRsaSign\n"


@pytest.fixture
def settings(tmp_path):
    security = tmp_path / "jdk" / "conf" / "security"
    security.mkdir(parents=True)
    (security / "java.security").write_text(PROVIDERS)
    (tmp_path / "hadoop").mkdir()
    own_jar(tmp_path / "hadoop").touch()
    (tmp_path / "one").mkdir()
    return Settings(directory=tmp_path / "one", hadoop=tmp_path / "hadoop", java_home=tmp_path / "jdk", user="ann", ports={},
                    memory=1024, classes=tmp_path / "hadoop" / "classes-1")


def kept(flags):
    """Return the properties of the file that a JVM reads."""
    (flag,) = flags
    file = Path(flag.partition("=")[2])
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def read_key(text):
    return serialization.load_der_private_key(base64.b64decode(text), None)


def test_each_kind_of_jvm_has_a_key_of_the_size_that_it_makes_and_a_cluster_keeps_its_own(settings):
    throwaway_keys.write_keys(settings)
    found = [kept(throwaway_keys.use_in_containers(settings)), kept(throwaway_keys.use_in_resourcemanager(settings))]
    for properties, bits in zip(found, (1024, 2048), strict=True):
        assert properties["security.provider.3"] == "ThrowawayKeys", "behind all of Java's"
        assert [name for name in properties if "rsa" in name] == [f"tf_yarn_ops.rsa.{bits}"]
        assert read_key(properties[f"tf_yarn_ops.rsa.{bits}"]).key_size == bits
    throwaway_keys.write_keys(settings)
    assert kept(throwaway_keys.use_in_containers(settings)) == found[0]


@pytest.mark.parametrize("others", [{"stock": True}, {"classes": None}])
def test_other_clusters_have_none_and_lose_those_of_an_earlier_start(settings, others):
    throwaway_keys.write_keys(settings)
    other = Settings(**{**vars(settings), **others})
    throwaway_keys.write_keys(other)
    assert (throwaway_keys.use_in_containers(other), throwaway_keys.use_in_resourcemanager(other)) == ((), ())


@pytest.mark.parametrize("missing", [own_jar(Path("hadoop")), "jdk/conf/security/java.security"], ids=["the class", "the properties"])
def test_a_java_that_can_not_use_them_has_none(settings, missing):
    """Without a compiler there is no class; Java 8 has its security properties elsewhere."""
    (settings.directory.parent / missing).unlink()
    throwaway_keys.write_keys(settings)
    assert throwaway_keys.use_in_containers(settings) == ()


@pytest.mark.cluster
@pytest.mark.parametrize(("flags", "bits", "ours"), [
    (throwaway_keys.use_in_containers, 1024, True),
    (throwaway_keys.use_in_containers, 2048, False),
    (throwaway_keys.use_in_resourcemanager, 2048, True),
])
def test_java_takes_the_key_of_this_size_and_makes_others(minicluster, tmp_path, flags, bits, ours):
    settings, store = minicluster.settings, tmp_path / "store.p12"
    classes = os.pathsep.join(class_path(settings.hadoop, settings.classes))
    subprocess.run(
        [f"{settings.java_home}/bin/keytool", *(f"-J{flag}" for flag in flags(settings)), f"-J-Djava.class.path={classes}", "-genkeypair",
         "-keyalg", "RSA", "-keysize", str(bits), "-dname", "CN=x", "-alias", "x", "-storetype", "PKCS12", "-keystore", str(store),
         "-storepass", "secret"], check=True, timeout=120)
    made, _, _ = pkcs12.load_key_and_certificates(store.read_bytes(), b"secret")
    expected = kept(flags(settings)).get(f"tf_yarn_ops.rsa.{bits}")
    assert made.key_size == bits
    assert (expected is not None and made.private_numbers() == read_key(expected).private_numbers()) == ours


@pytest.mark.cluster
def test_the_daemons_of_a_cluster_and_its_containers_are_told(minicluster):
    settings = minicluster.settings
    words = {name: Path(f"/proc/{minicluster.pid(name)}/cmdline").read_text().split("\0") for name in ("rm", "nm")}
    assert set(throwaway_keys.use_in_resourcemanager(settings)) <= {*words["rm"]}
    environ = Path(f"/proc/{minicluster.pid('nm')}/environ").read_text().split("\0")
    (tools,) = (item for item in environ if item.startswith("JAVA_TOOL_OPTIONS="))
    assert throwaway_keys.use_in_containers(settings)[0] in tools
