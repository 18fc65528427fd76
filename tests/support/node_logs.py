"""Logs of containers on a fake YARN, served as Hadoop's NodeManagers serve them."""


def serve_logs(yarn):
    """Return the logs, bytes by container, which a test may change at any time.

    A node answers with as many bytes from the end as it is asked for, and says the whole length.
    """
    logs = {}

    def answer(method, path):
        if "/containerlogs/" not in path:
            return None
        container, name = path.split("/")[-2:]
        if container not in logs:
            return 404, {}, "gone"
        content = logs[container]
        size = next(
            int(request[2].get("size", -len(content))) for request in reversed(yarn.requests) if request[1] == path
        )
        sent = content[max(0, len(content) + size) :] if size else b""
        head = f"Container: {container} on node:1\nLogType:{name}\nLogLength:{len(content)}\nLogContents:\n"
        text = head.encode() + sent + f"\nEnd of LogType:{name}".encode()
        return 200, {"Content-Type": "text/plain;charset=utf-8"}, text

    yarn.faults.append(answer)
    return logs
