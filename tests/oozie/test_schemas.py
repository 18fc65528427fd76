"""Documents against the schemas of Oozie."""

import sys
import zipfile

import pytest

from support.oozie_package import FLOW, NOW, PLACE
from support.oozie_site import FETCH_SECONDS, fetch
from tf_yarn_ops.oozie import schemas
from tf_yarn_ops.oozie.package import documents_of
from tf_yarn_ops.oozie.request import read_oozie_request


def test_functions_of_a_site_are_left_to_its_server(place):
    (place / "flow.xml").write_text(FLOW.replace("ge 0.9", "ge our:limit() and not (trimmed('a') eq 'b')"))
    documents_of(read_oozie_request("job.yaml", {"workflow": "flow.xml"}, NOW), PLACE)


@pytest.mark.slow
@pytest.mark.timeout(FETCH_SECONDS)
def test_the_schemas_are_those_of_oozies_client():
    with zipfile.ZipFile(next((fetch() / "jars").glob("oozie-client-*.jar"))) as archive:
        for file in (*schemas.SCHEMA_FILES.values(), "oozie-common-1.0.xsd"):
            assert archive.read(file) == (schemas.SCHEMA_FOLDER / file).read_bytes()


def test_without_the_library_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(schemas.SchemasMissing, match=r"pip install 'tf-yarn-ops\[oozie\]'"):
        schemas.parse_xml("workflow", "<a/>")


def test_an_entity_is_never_read(tmp_path):
    (tmp_path / "secret").write_text("secret")
    text = f'<!DOCTYPE a [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]><a>&e;</a>'
    assert "secret" not in "".join(schemas.parse_xml("workflow", text).itertext())
