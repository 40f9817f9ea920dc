"""Stands for a controller that a nursery has forked: it ends as that one ends, and hangs up when it is told to stop.

Run as `python -m exitcode_reference_controller.nursling DIRECTORY ARGUMENT…`, with the nursery's directory and the
controller's own arguments. It imports next to nothing.
"""

import json
import os
import signal
import socket
import sys

NAME = "nursery"
"""Of the socket in the nursery's directory."""
_NURSERY_GONE = 1
_KILLED = 128
"""What a shell adds to the number of a signal that ended a command."""


def main(directory: str, arguments: list[str]) -> int:
    """Asks for a controller and waits for its end; its exit status."""
    nursery = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    # However long the directory's path is: a socket's own has room for 107 bytes.
    nursery.connect(f"/proc/self/fd/{descriptor}/{NAME}")
    os.close(descriptor)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: nursery.shutdown(socket.SHUT_WR))
    socket.send_fds(nursery, [json.dumps(arguments).encode()], [1, 2])
    answer = nursery.recv(16)
    if not answer:
        return _NURSERY_GONE
    status = int(answer)
    return status if status >= 0 else _KILLED - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
