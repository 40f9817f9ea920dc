"""Starts controllers in no time: a process that has imported everything, and forks one for whoever asks for it.

To import the official client takes most of a second of a processor; whoever starts a hundred variants pays it once. Run
as `python -m exitcode_reference_controller.nursery DIRECTORY`: it prints `ready` and listens in that directory. A
`nursling` asks with the arguments of a controller, and lends its standard output and error; the controller is a process
of its own. When the nursling hangs up, it gets SIGTERM, and SIGKILL if it has not ended a few seconds later.
"""

import ctypes
import gc
import json
import math
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from exitcode_reference_controller.command_line import main
from exitcode_reference_controller.nursling import NAME

LONGEST_REQUEST = 1 << 16
_GRACE_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1


@dataclass(kw_only=True)
class _Child:
    """A controller and the nursling that waits for its end."""

    pid: int
    nursling: socket.socket
    kill_at: float | None = None


class Nursery:
    """Forks controllers until it is told to stop. It has one thread: a fork takes no other along."""

    def __init__(self, directory: Path) -> None:
        self._parent = os.getpid()
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._listener.bind(f"/proc/self/fd/{descriptor}/{NAME}")
        os.close(descriptor)
        self._listener.listen(64)
        self._selector.register(self._listener, selectors.EVENT_READ)
        # Each signal is a byte in this pipe: one wait is for nurslings, for children and for SIGTERM alike.
        self._wakeup, self._notify = os.pipe()
        for end in (self._wakeup, self._notify):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._notify)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        self._selector.register(self._wakeup, selectors.EVENT_READ)

    def serve(self) -> list[str] | None:
        """Serves until SIGTERM or SIGINT: None. In each controller that it forks: the arguments of that one."""
        stopping = False
        while not (stopping and not self._children):
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._listener:
                    arguments = self._admit()
                    if arguments is not None:
                        return arguments
                elif key.fileobj == self._wakeup:
                    told = os.read(self._wakeup, 4096)
                    self._reap()
                    if signal.SIGTERM in told or signal.SIGINT in told:
                        stopping = True
                        for child in self._children.values():
                            self._end(child)
                else:
                    self._end(key.data)
            self._kill_what_stays()
        return None

    def _admit(self) -> list[str] | None:
        """Takes one request and forks; the arguments in the child, None in the nursery."""
        nursling, _ = self._listener.accept()
        nursling.settimeout(_GRACE_SECONDS)
        descriptors: list[int] = []
        with suppress(OSError):
            message, descriptors, _, _ = socket.recv_fds(nursling, LONGEST_REQUEST, 2)
        if len(descriptors) != 2:
            nursling.close()
            return None
        pid = os.fork()
        if pid == 0:
            self._become_a_controller(descriptors)
            return [str(argument) for argument in json.loads(message)]
        for descriptor in descriptors:
            os.close(descriptor)
        child = self._children[pid] = _Child(pid=pid, nursling=nursling)
        self._selector.register(nursling, selectors.EVENT_READ, child)
        return None

    def _become_a_controller(self, descriptors: list[int]) -> None:
        """Leaves everything of the nursery behind, and dies with it."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != self._parent:  # it died before it could be noticed
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        self._listener.close()
        for child in self._children.values():
            child.nursling.close()
        self._children.clear()
        for end in (self._wakeup, self._notify):
            os.close(end)
        for standard, descriptor in zip((1, 2), descriptors, strict=True):
            os.dup2(descriptor, standard)
            os.close(descriptor)

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid)
            self._forget(child)
            # A nursling that has gone does not want to know.
            with child.nursling, suppress(OSError):
                child.nursling.sendall(str(os.waitstatus_to_exitcode(status)).encode())

    def _end(self, child: _Child) -> None:
        """Asks a controller to end. Its nursling says nothing after its request: it hung up, or is no more."""
        self._forget(child)
        if child.kill_at is None:
            os.kill(child.pid, signal.SIGTERM)
            child.kill_at = time.monotonic() + _GRACE_SECONDS

    def _forget(self, child: _Child) -> None:
        """Listens to its nursling no more."""
        if child.nursling in self._selector.get_map():
            self._selector.unregister(child.nursling)

    def _patience(self) -> float | None:
        nearest = min((c.kill_at for c in self._children.values() if c.kill_at is not None), default=math.inf)
        return None if nearest == math.inf else max(0.0, nearest - time.monotonic())

    def _kill_what_stays(self) -> None:
        for child in self._children.values():
            if child.kill_at is not None and time.monotonic() >= child.kill_at:
                os.kill(child.pid, signal.SIGKILL)
                child.kill_at = math.inf


def run(directory: Path) -> int:
    """The nursery until it is told to stop; and, in each process that it forks, the controller. Its exit status."""
    nursery = Nursery(directory)
    gc.freeze()  # what is there now is shared with every controller, as long as nobody writes to it
    print("ready", flush=True)
    arguments = nursery.serve()
    return 0 if arguments is None else main(arguments)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
