"""From the options of ``ytf oozie package`` to a checked `OozieRequest`: the application, the job and its local files.

Every fault is reported at once, with the name of its option, or with its path in the job's document.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ..environments.requirements import with_built_environment
from ..errors import Fault, FaultCode, GeneralFault, why_unreadable
from ..hadoop.site import find_site
from ..job.document import read_document
from ..job.request import find_job_warnings
from ..job.requirement import canonical_type
from ..job.spec import JobSpec
from ..runtime.common.values import read_text_file
from ..submit.preflight import CLIENT_CONFIG, file_faults, local_sources
from ..validation import check_faults, noting
from .data import read_data
from .documents import OozieRequest, fill_workflow
from .fields import fill, texts, uses
from .package_options import OptionFault, read_options
from .packed_job import COORDINATOR_NAMES, FILES_FOLDER, OWN_FILE, WORKFLOW_NAMES
from .schedule import ScheduleFault, find_schedule_warnings, read_schedule
from .trainings import TrainingAction, read_trainings

#: The options about the times of a run, and the elements of ``sla:info`` that they give.
_SLA = {"sla_start": "should-start", "sla_end": "should-end", "sla_duration": "max-duration"}
_CONTROLS = ("timeout", "concurrency", "execution", "throttle")
_OF_SCHEDULE = ("timezone", "start", "end", "data", "output_data", *_CONTROLS, "sla_contact", *_SLA)
#: Options that need one of others.
_NEEDS = (
    (_OF_SCHEDULE, ("schedule", "frequency"), ScheduleFault.NEEDS_SCHEDULE),
    (("data_instances", "done_flag"), ("data",), OptionFault.NEEDS),
    (("data_frequency",), ("data", "output_data"), OptionFault.NEEDS),
    (("sla_contact", *_SLA), ("sla_end",), OptionFault.NEEDS),
)
#: Values with a colon, which HDFS allows in no path.
_WITH_COLON = ("nominalTime", "actualTime")
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
    BAD_CHARACTER = "{given!r} has a character that XML can't hold"
    MARKUP = "{given!r} has < or &; Oozie puts the value into its XML as it is, so write it without them"
    EXPRESSION = "{given!r} holds ${{, which Oozie would evaluate; write the name as it is"
    NAME_TAKEN = "{given!r} is also the name of another file of the application; give it another name"
    NO_FILE = "there is no file {given} on this machine"
    EMPTY = "'' is not {what}; {instead}"
    LONG_NAME = "the name has {length} characters, and Oozie's database holds {most}; give a shorter one with --name"
    OWN_FLOW = "the workflow of --workflow says what comes before a training; leave this away"
    NOT_THE_JOBS_USER = "the user of the workflow submits the job; leave this away"


def read_oozie_request(job: str, words: Mapping[str, Any], now: datetime) -> OozieRequest:
    """Return the request of a job's file and of the options.

    Parameters
    ----------
    job : str
        The path of the job's YAML, or of a list of jobs.
    words : mapping of str to value
        The options of ``ytf oozie package`` by their names. None, and an absent name, mean not given.
    now : datetime
        With a time zone.

    Raises
    ------
    SpecInvalid
        With every fault of the request.
    """
    faults: list[Fault] = []
    options = read_options(words, faults)
    given = {name for name, value in words.items() if value not in (None, (), [])}
    for names, others, code in _NEEDS:
        if not given & {*others}:
            faults += [Fault(name, code, {"other": " or ".join(others)}) for name in names if name in given]
    schedule = read_schedule(options, now, faults)
    data, properties = read_data(options, schedule, faults), dict(options["property"])
    minutes = {element: options[name] for name, element in _SLA.items() if options[name] is not None}
    sla = {
        "nominal-time": "${coord:nominalTime()}",
        **{element: f"${{{value} * MINUTES}}" for element, value in minutes.items()},
        "alert-events": "start_miss,end_miss,duration_miss",
        **({"alert-contact": options["sla_contact"]} if options["sla_contact"] else {}),
    }
    known = {
        **{name.name: "" for name in (*WORKFLOW_NAMES, *COORDINATOR_NAMES)},
        **{one.name: one.uri for one in data},
        **properties,
    }
    scheduled = bool(given & {"schedule", "frequency"})
    document: dict[str, Any] = {}
    trainings: list[TrainingAction] = []
    warnings: list[str] = []
    with noting(faults):
        document = read_document(job, key="job", faults=faults)
        for training in read_trainings(job, document, faults):
            found: list[Fault] = []
            trainings.append(_read_training(training, document, known, scheduled, found, warnings))
            faults += [fault.below(training.name) if training.suffix else fault for fault in found]
    request = OozieRequest(
        name=options["name"] or _name_of(document, job),
        python=options["python"],
        properties=properties,
        data=tuple(data),
        schedule=schedule,
        controls={name: str(options[name]) for name in _CONTROLS if options[name] is not None},
        sla=sla if minutes else {},
        retry_max=options["retry_max"],
        retry_interval=options["retry_interval"],
        launcher_memory=options["launcher_memory"],
        launcher_queue=options["launcher_queue"] or "",
        has_pex=options["pex"],
        trainings=tuple(trainings),
        workflow_name=options["name"] or "",
    )
    request = _read_files(request, options, faults)
    faults += _text_faults(request)
    check_faults(dict.fromkeys(faults))
    if schedule:
        warnings += find_schedule_warnings(schedule, now)
    if "output_data" in given:
        warnings.append(
            "output_data: Oozie deletes this folder when a person runs the coordinator's action again "
            "without -nocleanup; a path in the job's output is kept"
        )
    return replace(request, warnings=tuple(warnings))


def _read_training(
    training: TrainingAction,
    document: Mapping[str, Any],
    known: Mapping[str, str],
    scheduled: bool,
    faults: list[Fault],
    warnings: list[str],
) -> TrainingAction:
    """Return a training with its document, which is the given one if the job is not in a list."""
    spec = None
    with noting(faults):
        if training.suffix:
            document = read_document(training.job, key="job", faults=faults)
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
    warnings += [f"{where}{doubt}" for doubt in find_job_warnings(spec)]
    packed, sources = _pack_sources(document, spec)
    return replace(training, document=packed, sources=sources, queue="" if spec.queue == "default" else spec.queue)


def _read_files(request: OozieRequest, options: Mapping[str, Any], faults: list[Fault]) -> OozieRequest:
    """Return the request with the text of the user's own workflow, and with the other files by their names."""
    file, extra = options["workflow"], dict[str, Path]()
    if file is not None:
        try:
            request = replace(request, flow=read_text_file(file))
        except (OSError, ValueError) as error:
            faults.append(
                Fault("workflow", GeneralFault.UNREADABLE_FILE, {"file": file, "error": why_unreadable(error)})
            )
        else:
            with noting(faults):
                fill_workflow(request)
        faults += [Fault(f"{one.name}.needs", OozieRequestFault.OWN_FLOW) for one in request.trainings if one.needs]
    for path in map(Path, options["include"]):
        if OWN_FILE.fullmatch(path.name) or path.name in extra:
            faults.append(Fault("include", OozieRequestFault.NAME_TAKEN, {"given": path.name}))
        elif not os.path.isfile(path):  # Path.is_file raises for a name that is too long
            faults.append(Fault("include", OozieRequestFault.NO_FILE, {"given": str(path)}))
        extra[path.name] = path.absolute()
    return replace(request, extra=extra)


def _field_faults(document: Mapping[str, Any], known: Mapping[str, str], scheduled: bool) -> Iterator[Fault]:
    """Yield the faults of ``${name}`` in the fields of the job."""
    coordinators = [name.name for name in COORDINATOR_NAMES]
    allowed = tuple(name for name in known if scheduled or name not in coordinators)
    for path, name in uses(document):
        if name in coordinators and not scheduled:
            yield Fault(path, OozieRequestFault.NOT_SCHEDULED, {"given": name})
        elif name not in known:
            yield Fault(path, OozieRequestFault.UNKNOWN_NAME, {"given": name, "allowed": allowed})
        elif name in _WITH_COLON and path in ("input", "output"):
            yield Fault(path, OozieRequestFault.COLON, {"given": name})
    if document.get("user"):
        yield Fault("user", OozieRequestFault.NOT_THE_JOBS_USER)


def _local_faults(document: Mapping[str, Any], spec: JobSpec) -> Iterator[Fault]:
    """Yield the faults of files of this machine."""
    used, written = dict(uses(document)), dict(texts(document))
    local = local_sources(spec)
    late = {path for path in local if path in used}
    if CLIENT_CONFIG in local:
        yield Fault(CLIENT_CONFIG, OozieRequestFault.SECRET_FILE, {"given": spec.docker.client_config})
    for path in sorted(late):
        yield Fault(path, OozieRequestFault.NOT_YET, {"given": written[path], "name": used[path]})
    yield from (fault for fault in file_faults(spec) if fault.path not in late)


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


def _name_of(document: Mapping[str, Any], job: str) -> str:
    name = document.get("name")
    return name if isinstance(name, str) and name.strip() and "${" not in name else Path(job).stem


def _text_faults(request: OozieRequest) -> Iterator[Fault]:
    """Yield the faults of texts that stand in the XML."""
    texts = {
        "name": request.name,
        "python": request.python,
        "launcher_queue": request.launcher_queue,
        **{f"property {name}": value for name, value in request.properties.items()},
    }
    for path, text in texts.items():
        if _NOT_IN_XML.search(text):
            yield Fault(path, OozieRequestFault.BAD_CHARACTER, {"given": text})
        if re.search("[<&]", text):
            yield Fault(path, OozieRequestFault.MARKUP, {"given": text})
    if "${" in request.name:
        yield Fault("name", OozieRequestFault.EXPRESSION, {"given": request.name})
    if len(request.name) > _LONGEST_NAME:
        yield Fault("name", OozieRequestFault.LONG_NAME, {"length": len(request.name), "most": _LONGEST_NAME})
    if not request.python.strip():
        yield Fault(
            "python",
            OozieRequestFault.EMPTY,
            {"what": "an interpreter", "instead": "give a path such as /opt/tf/bin/python"},
        )
