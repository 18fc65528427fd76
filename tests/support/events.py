"""Event files as TensorFlow writes them, without the seconds that importing TensorFlow takes; and a browser that reads them."""

import io
import json
import struct
import time
import zlib

#: The tags of `event_file`.
SCALAR, IMAGE, HISTOGRAM = "loss of mnist", "digit", "weights/hist"
#: The edge of the image, pixels.
EDGE = 28


def event_file(steps, first=0):
    """Return the bytes of an event file with a point, an image and a histogram for each step."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    target = io.BytesIO()
    writer = RecordWriter(target)
    histogram = HistogramProto(
        min=-1, max=1, num=10, sum=0, sum_squares=5, bucket_limit=[-0.5, 0, 0.5, 1], bucket=[2, 3, 3, 2]
    )
    image = Summary.Image(height=EDGE, width=EDGE, colorspace=3, encoded_image_string=_png())
    for step in range(first, first + steps):
        values = [
            Summary.Value(tag=SCALAR, simple_value=1 / (step + 1)),
            Summary.Value(tag=IMAGE, image=image),
            Summary.Value(tag=HISTOGRAM, histo=histogram),
        ]
        writer.write(Event(wall_time=time.time(), step=step, summary=Summary(value=values)).SerializeToString())
    return target.getvalue()


def hide_tensorflow(folder):
    """Return a folder for ``PYTHONPATH`` that hides TensorFlow: a TensorBoard that only draws need not import it.

    That takes 4 s of CPU; with TensorFlow: test_docker_cluster.py, tests/secure, and while a job runs test_jobs_cluster.py.
    """
    folder.mkdir()
    (folder / "tensorflow.py").write_text("raise ImportError\n")
    return folder


def _png():
    rows = b"".join(b"\0" + bytes(range(EDGE * 3)) for _ in range(EDGE))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", EDGE, EDGE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def see_charts(page, url, run, steps, method="PUT"):
    """Assert that a browser shows the curve with its points, the image and the histogram of `event_file`.

    YARN's proxy gets a PUT in place of each POST.
    """
    answers = []
    page.on("response", lambda answer: answers.append(answer) if answer.url.endswith("/timeSeries") else None)
    page.goto(f"{url}#timeseries")
    page.locator("scalar-card canvas").first.wait_for()
    page.locator("image-card img").first.wait_for()
    table = page.locator("scalar-card-data-table").first
    table.get_by_text(run, exact=True).first.wait_for()
    table.get_by_text(str(steps - 1), exact=True).first.wait_for()  # the last step
    width = page.locator("image-card img").first.evaluate("image => image.decode().then(() => image.naturalWidth)")
    assert width == EDGE
    series = [one for answer in answers if answer.status == 200 for one in json.loads(answer.body())]
    points = [one["runToSeries"][run] for one in series if one["tag"] == SCALAR]
    assert [point["step"] for point in points[-1]] == list(range(steps))
    assert {answer.request.method for answer in answers} == {method}
    page.goto(f"{url}#histograms")
    page.locator("vz-histogram-timeseries .histogram").nth(steps - 1).wait_for(state="attached")
