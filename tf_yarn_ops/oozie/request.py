"""From the options of ``ytf oozie package`` to a checked `OozieRequest`: the application, the job and its local files.

Every fault is reported at once, with the name of its option, or with its path in the job's document.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ..environments.requirements import with_built_environment
from ..errors import Fault, FaultCode, GeneralFault, did_you_mean
from ..hadoop.site import find_site
from ..job.document import read_document
from ..job.request import find_job_warnings
from ..job.requirement import canonical_type
from ..job.spec import JobSpec
from ..submit.preflight import CLIENT_CONFIG, check_files, local_sources
from ..validation import check_faults, noting, parse_count, parse_memory
from .data import DataSet, name_faults, read_data, read_uri
from .documents import Application
from .fields import commands, fill, uses
from .flow import fill_workflow
from .packed_job import COORDINATOR_NAMES, DATA_IN, DATA_OUT, FILES_FOLDER, OWN_FILE, WORKFLOW_NAMES
from .schedule import (
    Schedule,
    ScheduleFault,
    find_schedule_warnings,
    moving_day_fault,
    read_frequency,
    read_minutes,
    read_schedule,
)
from .trainings import TrainingAction, read_trainings

EXECUTIONS = ("FIFO", "LIFO", "LAST_ONLY", "NONE")
#: The options about the times of a run, and the elements of ``sla:info`` that they give.
_SLA = {"sla_start": "should-start", "sla_end": "should-end", "sla_duration": "max-duration"}
#: Options that only a coordinator has.
_SCHEDULED = ("data", "output_data", "timeout", "concurrency", "throttle", "execution", "sla_contact", *_SLA)
_OF_DATA = ("data_frequency", "data_instances", "done_flag")
#: Values with a colon, which HDFS allows in no path.
_WITH_COLON = ("nominalTime", "actualTime")
#: A file system itself.
_ROOT = re.compile(r"(\$\{nameNode\}|[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?)/*")
#: Characters of a name in Oozie's tables.
_LONGEST_NAME = 255
#: Characters that XML can't hold.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class OozieRequestFault(FaultCode):
    """Fault codes for a request."""

    UNKNOWN_NAME = "${{{given}}} has no value{hint}; known: {allowed}; --property NAME=VALUE adds one"
    NOT_SCHEDULED = "${{{given}}} has a value in a coordinator only; give --schedule or --frequency"
    COLON = "${{{given}}} has a colon, which HDFS allows in no path; use ${{nominalStamp}} or ${{nominalDate}}"
    NOT_YET = "{given!r} is a file of this machine, packed now, when ${{{name}}} has no value; name a file in HDFS"
    SECRET_FILE = (
        "{given!r} can't travel with the application, whose files others may read in HDFS; leave it out, and let the "
        "engines of the nodes log in"
    )
    NOT_A_PAIR = "{given!r} is not NAME=VALUE"
    BAD_CHARACTER = "{given!r} has a character that XML can't hold"
    MARKUP = "{given!r} has < or &; Oozie puts the value into its XML as it is, so write it without them"
    EXPRESSION = "{given!r} holds ${{, which Oozie would evaluate; write the name as it is"
    NAME_TAKEN = "{given!r} is also the name of another file of the application; give it another name"
    NO_FILE = "there is no file {given} on this machine"
    EMPTY = "'' is not {what}; {instead}"
    LONG_NAME = "the name has {length} characters, and Oozie's database holds {most}; give a shorter one with --name"
    NOT_A_FILE = "{given!r} is not the name of a file; give one such as _SUCCESS, or '' for the folder itself"
    ROOT = "{given!r} is a whole file system; name a folder in it"
    OWN_FLOW = "the workflow of --workflow says what comes before a training; leave this away"
    NOT_THE_JOBS_USER = "the user of the workflow submits the job; leave this away"


@dataclass(frozen=True)
class OozieRequest:
    """A checked request.

    Attributes
    ----------
    application : Application
    flow : str
        The text of the user's own workflow; empty for one with only the actions that train.
    extra : mapping of str to Path
        More files of the application by their names, for other actions of the workflow.
    warnings : tuple of str
    """

    application: Application
    flow: str
    extra: Mapping[str, Path]
    warnings: tuple[str, ...]


def read_oozie_request(job: str, options: Mapping[str, Any], now: datetime) -> OozieRequest:
    """Return the request of a job's file and of the options.

    Parameters
    ----------
    job : str
        The path of the job's YAML, or of a list of jobs.
    options : mapping of str to value
        Those of ``ytf oozie package`` by their names. None, and an absent name, mean not given.
    now : datetime
        With a time zone.

    Raises
    ------
    SpecInvalid
        With every fault of the request.
    """
    faults: list[Fault] = []
    given = {name: value for name, value in options.items() if value not in (None, (), [])}
    schedule = read_schedule(
        given.get("schedule"),
        given.get("frequency"),
        given.get("timezone"),
        given.get("start"),
        given.get("end"),
        now,
        faults,
    )
    scheduled = "schedule" in given or "frequency" in given
    if not scheduled:
        faults += [
            Fault(name, ScheduleFault.NEEDS_SCHEDULE, {"other": "schedule or frequency"})
            for name in _SCHEDULED
            if name in given
        ]
    if "data" not in given:
        faults += [
            Fault(name, ScheduleFault.NEEDS, {"other": "data"})
            for name in _OF_DATA
            if name in given and not ("output_data" in given and name == "data_frequency")
        ]
    if re.search(r"[\s/$]", given.get("done_flag", "")):
        faults.append(Fault("done_flag", OozieRequestFault.NOT_A_FILE, {"given": given["done_flag"]}))
    properties = _read_properties(given.get("property", ()), faults)
    data = _read_data(given, schedule, properties, faults)
    application = Application(
        name="",
        python=given.get("python", "python3"),
        properties=properties,
        data=tuple(data),
        schedule=schedule,
        controls=_read_controls(given, faults),
        sla=_read_sla(given, faults),
        retry_max=_read_number(given, "retry_max", partial(parse_count, least=0), faults),
        retry_interval=read_minutes("retry_interval", given.get("retry_interval"), faults),
        launcher_memory=_read_number(given, "launcher_memory", parse_memory, faults),
        launcher_queue=given.get("launcher_queue", ""),
        has_pex=bool(given.get("pex")),
    )
    known = {
        **{name.name: "" for name in (*WORKFLOW_NAMES, *COORDINATOR_NAMES)},
        **{one.name: one.uri for one in data},
        **properties,
    }
    document: dict[str, Any] = {}
    trainings: list[TrainingAction] = []
    warnings: list[str] = []
    with noting(faults):
        document = read_document(job, key="job")
        for training in read_trainings(job, document, faults):
            found: list[Fault] = []
            trainings.append(_read_training(training, document, known, scheduled, found, warnings))
            faults += [fault.below(training.name) if training.suffix else fault for fault in found]
    application = replace(
        application,
        name=given.get("name") or _name_of(document, job),
        trainings=tuple(trainings),
        workflow_name=given.get("name", ""),
    )
    flow, extra = _read_flow(given, application, faults)
    faults += _text_faults(application)
    check_faults(dict.fromkeys(faults))
    if schedule:
        warnings += find_schedule_warnings(schedule, now)
    if "output_data" in given:
        warnings.append(
            "output_data: Oozie deletes this folder when a person runs the coordinator's action again "
            "without -nocleanup; a path in the job's output is kept"
        )
    return OozieRequest(application, flow, extra, tuple(warnings))


def _read_training(
    training: TrainingAction,
    document: Mapping[str, Any],
    known: Mapping[str, str],
    scheduled: bool,
    faults: list[Fault],
    warnings: list[str],
) -> TrainingAction:
    """Return a training with its document, which is the given one if the job is not in a list."""
    folders = {tag: [read_uri(tag, text, faults) for text in getattr(training, tag)] for tag in ("delete", "mkdir")}
    faults += _field_faults(folders, {**known, "nameNode": ""}, scheduled)
    faults += [
        Fault(tag, OozieRequestFault.ROOT, {"given": uri})
        for tag, uris in folders.items()
        for uri in uris
        if _ROOT.fullmatch(uri)
    ]
    expressions = {name.name: name.expression for name in WORKFLOW_NAMES}
    filled = {tag: tuple(uris) for tag, uris in fill(folders, expressions).items()}
    training = replace(training, delete=filled["delete"], mkdir=filled["mkdir"])
    spec = None
    with noting(faults):
        if training.suffix:
            document = read_document(training.job, key="job")
        faults += _field_faults(document, known, scheduled)
        # With a sample of each value, to check all of the job's rules.
        spec = JobSpec.from_dict(fill(document, {name: value or "value" for name, value in known.items()}))
    if spec is None:
        return training
    faults += _local_faults(document, spec)
    if not faults:
        with noting(faults):
            spec = with_built_environment(spec, find_site(os.environ).environment_cache)
    where = f"{training.name} " if training.suffix else ""
    warnings += [f"{where}{doubt}" for doubt in (*_variable_warnings(document, known), *find_job_warnings(spec))]
    packed, sources = _pack_sources(document, spec)
    return replace(training, document=packed, sources=sources, queue="" if spec.queue == "default" else spec.queue)


def _read_flow(given: Mapping[str, Any], application: Application, faults: list[Fault]) -> tuple[str, dict[str, Path]]:
    """Return the text of the user's own workflow, and the other files of the application by their names."""
    text, extra = "", {}
    if "workflow" in given:
        try:
            text = Path(given["workflow"]).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            faults.append(
                Fault("workflow", GeneralFault.UNREADABLE_FILE, {"file": given["workflow"], "error": str(error)})
            )
        else:
            with noting(faults):
                fill_workflow(text, application)
        faults += [
            Fault(f"{one.name}.{key}", OozieRequestFault.OWN_FLOW)
            for one in application.trainings
            for key in ("needs", "delete", "mkdir")
            if getattr(one, key)
        ]
    for path in map(Path, given.get("include", ())):
        if OWN_FILE.fullmatch(path.name) or path.name in extra:
            faults.append(Fault("include", OozieRequestFault.NAME_TAKEN, {"given": path.name}))
        elif not os.path.isfile(path):  # Path.is_file raises for a name that is too long
            faults.append(Fault("include", OozieRequestFault.NO_FILE, {"given": str(path)}))
        extra[path.name] = path.absolute()
    return text, extra


def _read_properties(texts: Any, faults: list[Fault]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = str(text).partition("=")
        if not equals:
            faults.append(Fault("property", OozieRequestFault.NOT_A_PAIR, {"given": text}))
            continue
        found = name_faults("property", name, pairs)
        if not value:  # the shell action refuses a variable without a value
            found.append(
                Fault("property", OozieRequestFault.EMPTY, {"item": text, "what": "a value", "instead": "omit it"})
            )
        faults += found
        if not found:
            pairs[name] = value
    return pairs


def _read_data(
    given: Mapping[str, Any], schedule: Schedule | None, properties: Mapping[str, str], faults: list[Fault]
) -> list[DataSet]:
    frequency = read_frequency("data_frequency", given["data_frequency"], faults) if "data_frequency" in given else None
    data: list[DataSet] = []
    for path, default in (("data", DATA_IN), ("output_data", DATA_OUT)):
        data += read_data(
            path,
            given.get(path, ()),
            default,
            schedule,
            frequency,
            given.get("done_flag", "_SUCCESS"),
            given.get("data_instances"),
            properties,
            faults,
        )
        daily = any(one.output == (default == DATA_OUT) and one.frequency.unit in ("days", "months") for one in data)
        if schedule and daily and (fault := moving_day_fault(schedule, path)):
            faults.append(fault)
    names = [one.name for one in data]
    faults += [fault for name in {*properties} & {*names} for fault in name_faults("property", name, names)]
    both = {one.name for one in data if one.output} & {one.name for one in data if not one.output}
    faults += [fault for name in sorted(both) for fault in name_faults("output_data", name, names)]
    return data


def _read_controls(given: Mapping[str, Any], faults: list[Fault]) -> dict[str, str]:
    if given.get("execution", "FIFO") not in EXECUTIONS:
        faults.append(
            Fault("execution", GeneralFault.NOT_A_CHOICE, {"given": given["execution"], "allowed": EXECUTIONS})
        )
    timeout = given.get("timeout")
    controls = {
        "timeout": -1 if timeout == "-1" else read_minutes("timeout", timeout, faults),
        "concurrency": _read_number(given, "concurrency", parse_count, faults) or 1,
        "execution": given.get("execution", "FIFO"),
        "throttle": _read_number(given, "throttle", parse_count, faults),
    }
    return {name: str(value) for name, value in controls.items() if value is not None}


def _read_sla(given: Mapping[str, Any], faults: list[Fault]) -> dict[str, str]:
    minutes = {element: read_minutes(name, given.get(name), faults) for name, element in _SLA.items()}
    if "sla_end" not in given:
        faults += [
            Fault(name, ScheduleFault.NEEDS, {"other": "sla_end"}) for name in (*_SLA, "sla_contact") if name in given
        ]
        return {}
    return {
        "nominal-time": "${coord:nominalTime()}",
        **{element: f"${{{value} * MINUTES}}" for element, value in minutes.items() if value is not None},
        "alert-events": "start_miss,end_miss,duration_miss",
        **({"alert-contact": given["sla_contact"]} if given.get("sla_contact") else {}),
    }


def _read_number(given: Mapping[str, Any], name: str, read: Callable[[Any], int], faults: list[Fault]) -> int | None:
    if name in given:
        with noting(faults, name):
            return read(given[name])
    return None


def _field_faults(document: Mapping[str, Any], known: Mapping[str, str], scheduled: bool) -> Iterator[Fault]:
    """Yield the faults of ``${name}`` in the fields of the job."""
    coordinators = [name.name for name in COORDINATOR_NAMES]
    allowed = tuple(name for name in known if scheduled or name not in coordinators)
    for path, name in uses(document):
        if name in coordinators and not scheduled:
            yield Fault(path, OozieRequestFault.NOT_SCHEDULED, {"given": name})
        elif name not in known:
            yield Fault(path, OozieRequestFault.UNKNOWN_NAME, {"given": name, "allowed": allowed})
        elif name in _WITH_COLON and path in ("input", "output", "delete", "mkdir"):
            yield Fault(path, OozieRequestFault.COLON, {"given": name})
    if document.get("user"):
        yield Fault("user", OozieRequestFault.NOT_THE_JOBS_USER)


def _variable_warnings(document: Mapping[str, Any], known: Mapping[str, str]) -> list[str]:
    """Return warnings about variables of commands that look like misspelt names of values."""
    doubts = []
    for path, text in commands(document):
        for name in re.findall(r"\$\{?([a-z][A-Za-z0-9]+)\}?", text):
            if name not in known and (near := did_you_mean(name, known)) and name.lower()[:3] in near.lower():
                doubts.append(f"{path}: ${{{name}}} is a variable of the shell that nothing here sets{near}")
    return doubts


def _local_faults(document: Mapping[str, Any], spec: JobSpec) -> Iterator[Fault]:
    """Yield the faults of files of this machine."""
    used = dict(uses(document))
    local = local_sources(spec)
    late = {path for path in local if path in used}
    if CLIENT_CONFIG in local:
        yield Fault(CLIENT_CONFIG, OozieRequestFault.SECRET_FILE, {"given": spec.docker.client_config})
    for path in sorted(late):
        yield Fault(path, OozieRequestFault.NOT_YET, {"given": _value(document, path), "name": used[path]})
    found: list[Fault] = []
    with noting(found):
        check_files(spec)
    yield from (fault for fault in found if fault.path not in late)


def _pack_sources(document: Mapping[str, Any], spec: JobSpec) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return the document with its local sources below ``files/``, and the source of each of these paths."""
    sources: dict[str, Path] = {}
    packed = {key: dict(value or {}) if key in ("files", "archives") else value for key, value in document.items()}
    for where, path in local_sources(spec).items():
        field, _, name = where.partition(".")
        # A folder per field: a file and an archive may have the same name.
        suffix = "".join(path.suffixes[-2:]) if field == "archives" else ""
        place = f"{FILES_FOLDER}/{field}/{name or path.name}{suffix}"
        if field == "tasks":  # the environment of a type
            place = f"{FILES_FOLDER}/{where}/{path.name}"
            tasks = packed["tasks"]
            kind = next(one for one in tasks if name == f"{canonical_type(str(one))}.environment")
            packed["tasks"] = {**tasks, kind: {**tasks[kind], "environment": place}}
        elif name:
            packed[field][name] = place
        else:
            packed[field] = place
        sources[place] = path.absolute()
    return packed, sources


def _value(document: Mapping[str, Any], path: str) -> Any:
    field, _, name = path.partition(".")
    value = document.get(field)
    if field == "tasks" and isinstance(value, Mapping):
        field, _, name = name.partition(".")
        value = value.get(field)
    return value.get(name) if name and isinstance(value, Mapping) else value


def _name_of(document: Mapping[str, Any], job: str) -> str:
    name = document.get("name")
    return name if isinstance(name, str) and name.strip() and "${" not in name else Path(job).stem


def _text_faults(application: Application) -> Iterator[Fault]:
    """Yield the faults of texts that stand in the XML."""
    texts = {
        "name": application.name,
        "python": application.python,
        "launcher_queue": application.launcher_queue,
        **{f"property {name}": value for name, value in application.properties.items()},
        **{
            f"{one.name}.{tag}": " ".join(getattr(one, tag))
            for one in application.trainings
            for tag in ("delete", "mkdir")
        },
    }
    for path, text in texts.items():
        if _NOT_IN_XML.search(text):
            yield Fault(path, OozieRequestFault.BAD_CHARACTER, {"given": text})
        if re.search("[<&]", text):
            yield Fault(path, OozieRequestFault.MARKUP, {"given": text})
    if "${" in application.name:
        yield Fault("name", OozieRequestFault.EXPRESSION, {"given": application.name})
    if len(application.name) > _LONGEST_NAME:
        yield Fault("name", OozieRequestFault.LONG_NAME, {"length": len(application.name), "most": _LONGEST_NAME})
    if not application.python.strip():
        yield Fault(
            "python",
            OozieRequestFault.EMPTY,
            {"what": "an interpreter", "instead": "give a path such as /opt/tf/bin/python"},
        )
