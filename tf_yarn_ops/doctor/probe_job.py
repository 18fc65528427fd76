"""The checks of what jobs run: the archive that is their environment, and a tiny application."""

import shlex
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ..environments.check import check_archive
from ..errors import Cancelled, WaitTimeout
from ..job.parts import Deadlines
from ..job.spec import JobSpec, TaskSpec
from ..launch.launcher import Launcher
from ..runtime.common.reasons import Reason
from ..runtime.common.report import JobReport
from ..submit.preflight import local_path
from .known import KnownFacts, Question
from .symptoms import Finding, Symptom, ill, skip, well

#: Runs the program with the interpreter that runs the agent, the parent of this shell; an image may lack tr and head.
_COMMAND = "IFS= read -r -d '' python < /proc/$PPID/cmdline; exec \"$python\" -c {program}"
#: MiB; the program imports what an image has.
_MEMORY, _MEMORY_IMAGE = 256, 1024
#: Seconds by which the job's own deadlines are longer.
_SLACK = 60.0
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tf-nightly")


def examine_environment(known: KnownFacts) -> Finding:
    """Read the whole archive; import nothing."""
    environment = known.question.environment
    archive = local_path(environment.location) if environment and environment.scheme == "archive" else None
    if archive is None:
        return skip("--environment names no archive of this machine")
    found = check_archive(archive)
    if found.faults:
        return ill(Symptom.ENVIRONMENT_UNFIT, archive=archive, why="; ".join(map(str, found.faults)))
    if found.doubts:
        return ill(Symptom.ENVIRONMENT_UNCERTAIN, archive=archive, why="; ".join(map(str, found.doubts)))
    return well(
        f"{archive} has Python {found.python} and {found.packages} packages",
        python=found.python,
        packages=found.packages,
    )


def build_probe_job(known: KnownFacts) -> JobSpec:
    """Return the tiny job: one task that reports its Python and the versions of some packages."""
    question = known.question
    longest = question.timeout + _SLACK  # the doctor ends it first; these count if the doctor dies
    program = Path(__file__).with_name("node_program.py").read_text(encoding="utf-8")
    return JobSpec(
        name="ytf-doctor",
        command=_COMMAND.format(program=shlex.quote(program)),
        queue=question.queue,
        environment=question.environment,
        tasks={"worker": TaskSpec(memory=_MEMORY_IMAGE if question.image else _MEMORY, gpus=question.gpus)},
        deadlines=Deadlines(queue=longest, allocation=longest, total=longest),
    )


def check_application(known: KnownFacts) -> Finding:
    """Run the tiny job; report the node's Python and TensorFlow."""
    question = known.question
    if not (question.submit or question.image):
        return skip("no application is submitted without --submit")
    ids: list[str] = []
    with closing(Launcher(known.session.cluster, environ=question.environ)) as launcher:
        question.cancellation.then(launcher.cancel)
        try:
            report = launcher.run(build_probe_job(known), on_reserved=ids.append, timeout=question.timeout)
        except WaitTimeout:
            return _end_slow(launcher, ids[-1], question.timeout)
        except Cancelled as error:
            return skip(str(error))
    return _read_finding(report, question) if report.reason is Reason.SUCCEEDED else _failed(report)


def _end_slow(launcher: Launcher, application_id: str, seconds: float) -> Finding:
    state = launcher.report(application_id).state
    waits_for = str(launcher.session.resourcemanager.get(application_id).get("diagnostics") or "").strip()
    launcher.kill(application_id, "Killed by ytf doctor: it has waited long enough")
    return ill(
        Symptom.APPLICATION_SLOW,
        application=application_id,
        state=state,
        seconds=seconds,
        message=" ".join(waits_for.split())[:500] or "YARN gives no reason",
    )


def _failed(report: JobReport) -> Finding:
    reason = report.reason or Reason.AM_FAILED
    follow = f"Next: ytf logs {report.application_id} --task {report.master_log}" if report.application_id else ""
    if reason is Reason.AM_FAILED:
        follow = f"To try another Python: ytf doctor --submit --environment venv:///FOLDER. {follow}"
    return replace(
        ill(
            Symptom.APPLICATION_FAILED,
            {"application_id": report.application_id},
            application=report.application_id,
            reason=reason.value,
            message=report.message,
            hint=reason.hint,
            next=follow,
        ),
        reason=reason,
    )


def _read_finding(report: JobReport, question: Question) -> Finding:
    found = dict(report.metrics or {})
    packages = dict(found.get("packages") or {})
    tensorflow = next((packages[name] for name in _TENSORFLOW if name in packages), None)
    seconds = (report.finished_at or 0.0) - (report.submitted_at or 0.0)
    facts = {
        "application_id": report.application_id,
        "seconds": round(seconds, 1),
        "node": found,
        "master": dict(report.versions or {}),
    }
    learned = {"application_id": report.application_id}
    python = f"Python {found.get('python')} ({found.get('executable')})"
    if question.image:
        python = f"{question.image}, {python}"
    if broken := found.get("broken"):
        errors = "; ".join(f"{name} can't be imported: {error}" for name, error in dict(broken).items())
        return ill(Symptom.IMAGE_BROKEN, learned, facts=facts, python=python, errors=errors)
    gpus = len(found.get("gpus") or ())
    if gpus < question.gpus:
        return ill(
            Symptom.NO_GPU, learned, facts=facts, python=python, host=found.get("host"), found=gpus, given=question.gpus
        )
    if tensorflow is None and not found.get("imported"):
        return ill(
            Symptom.NO_TENSORFLOW,
            learned,
            facts=facts,
            python=python,
            host=found.get("host"),
            application=report.application_id,
        )
    shown = ", ".join(
        filter(
            None,
            (
                f"TensorFlow {tensorflow}" if tensorflow else "",
                *(
                    f"{name} {packages.get(name, '')}".strip()
                    for name in found.get("imported") or ()
                    if name != "tensorflow"
                ),
                f"{gpus} GPUs" if question.gpus else "",
            ),
        )
    )
    return well(
        f"{report.application_id} ran on {found.get('host')} in {seconds:.0f} s: {python}, {shown}",
        learned,
        **facts,
    )
