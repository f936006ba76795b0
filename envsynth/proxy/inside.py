"""Inside a sandbox without a network: a port of its loopback leads to a socket outside, beside a command.

    python3 inside.py SOCKET COMMAND ...

Standard library of Python 3.6 alone; run as a file, never imported by the rest. The address is in $OPENAI_BASE_URL of
the command, and its exit code is this program's.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading


def pump(source: socket.socket, target: socket.socket) -> None:
    """Carry bytes one way until there are no more."""
    with contextlib.suppress(OSError):
        while True:
            part = source.recv(65536)
            if not part:
                break
            target.sendall(part)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def carry(near: socket.socket, path: str) -> None:
    """Carry a connection to the socket outside."""
    far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        far.connect(path)
        back = threading.Thread(target=pump, args=(far, near))
        back.daemon = True
        back.start()
        pump(near, far)
        back.join()
    except OSError as error:
        print(f"envsynth proxy: it cannot be reached: {error}", file=sys.stderr)
    finally:
        far.close()
        near.close()


def listen(path: str) -> int:
    """A port of the loopback that leads to the socket outside."""
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.bind(("127.0.0.1", 0))
    server.listen(64)

    def serve() -> None:
        while True:
            near, _ = server.accept()
            one = threading.Thread(target=carry, args=(near, path))
            one.daemon = True
            one.start()

    thread = threading.Thread(target=serve)
    thread.daemon = True
    thread.start()
    return int(server.getsockname()[1])


def main(words: "list[str]") -> int:
    """Run the command."""
    base = f"http://127.0.0.1:{listen(words[0])}/v1"
    variables = dict(os.environ, OPENAI_BASE_URL=base, OPENAI_API_BASE=base)
    variables.setdefault("OPENAI_API_KEY", "none")
    try:
        return subprocess.call(words[1:], env=variables)
    except OSError as error:
        print(f"envsynth proxy: the command cannot be started: {error}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # 128 + signal, as a shell has it; daemons may still be carrying.
    sys.stdout.flush()
    os._exit(code if code >= 0 else 128 - code)
