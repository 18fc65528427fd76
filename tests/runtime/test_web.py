"""The coordinator's web server: what it answers, and how often it makes a document."""

import asyncio
import json

from tf_yarn_ops.runtime.common.report import JobReport, TaskReport
from tf_yarn_ops.runtime.common.status import Facts, build_status
from tf_yarn_ops.runtime.master.web import Website


def status():
    return build_status(JobReport("application_1_1", name="digits"), Facts(0.0))


def test_however_many_look_a_document_is_made_once_a_second():
    made, now = [], [100.0]

    def document():
        made.append(1)
        return status()

    async def tail(name):
        return None

    website = Website(document, tail, lambda: JobReport("application_1_1", tasks=(TaskReport("worker:0"),)).to_dict(),
                      lambda: now[0])

    async def look():
        answers = [await website.answer(target) for target in ("/", "/status.json", "/parts.json", "/?x=1") * 5]
        now[0] += 1.0
        answers.append(await website.answer("/status.json"))
        report = await website.answer("/status.json?user.name=ann&only=report")
        assert JobReport.from_dict(json.loads(report[2])).tasks == (TaskReport("worker:0"),)
        assert b"exit_code" not in report[2] and b"options" not in report[2]
        return answers, await website.answer("/log.txt?task=worker%3A7"), await website.answer("/favicon.ico")

    answers, log, icon = asyncio.run(look())
    assert len(made) == 2 and {answer[0] for answer in answers} == {"200 OK"}
    assert json.loads(answers[1][2]) == json.loads(json.dumps(status()))
    assert log[0] == icon[0] == "404 Not Found"
