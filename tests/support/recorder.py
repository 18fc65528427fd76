"""A relay with the job's certificate that keeps each message between agents and coordinator."""

import asyncio
import contextlib
import socket
import ssl
import threading

from tf_yarn_ops.runtime.common.protocol import decode


class Recorder:
    """Stands between the agents of a job and its coordinator from `start` to the end of the context.

    Attributes
    ----------
    port : int
        For the agents; nothing listens there before `start`.
    messages : list of tuple
        ``agent`` or ``coordinator``, and the message.
    """

    def __init__(self):
        self.messages = []
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._socket.close()

    def start(self, folder, credentials, target):
        """Relay to the coordinator's port, with these credentials towards both sides."""
        (folder / "crt").write_bytes(credentials.certificate)
        (folder / "key").write_bytes(credentials.key)
        contexts = []
        for side in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
            context = ssl.SSLContext(side)
            context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
            context.load_verify_locations(folder / "crt")
            context.load_cert_chain(folder / "crt", folder / "key")
            contexts.append(context)

        async def relay(reader, writer):
            with contextlib.suppress(OSError):
                to_reader, to_writer = await asyncio.open_connection("127.0.0.1", target, ssl=contexts[1])
                await asyncio.gather(
                    self._pump("agent", reader, to_writer), self._pump("coordinator", to_reader, writer)
                )

        serving = asyncio.start_server(relay, sock=self._socket, ssl=contexts[0])
        asyncio.run_coroutine_threadsafe(serving, self._loop).result(60)

    async def _pump(self, sender, reader, writer):
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                self.messages.append((sender, decode(line)))
                writer.write(line)
                await writer.drain()
        writer.close()
