"""A browser without a window, spoken to over its own debugging protocol: what does a page do when it is opened?"""

import asyncio
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
DEADLINE = 60.0
"""Seconds for a whole visit. A browser on a busy machine takes some to start."""


def browser() -> str | None:
    """The path of a browser of this machine, None if there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@dataclass
class Visit:
    """What was seen of a page."""

    answers: list[Any] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    complaints: list[dict[str, Any]] = field(default_factory=list)
    """Console messages, exceptions, violations of the policy, dialogs."""


def visit(program: str, page: Path, profile: Path, expressions: tuple[str, ...], *, width: int = 1280) -> Visit:
    """Open a page in a fresh profile, evaluate the expressions in it, and tell what happened meanwhile."""
    return asyncio.run(asyncio.wait_for(_run(program, page, profile, expressions, width), DEADLINE))


async def _run(program: str, page: Path, profile: Path, expressions: tuple[str, ...], width: int) -> Visit:
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    command = [program, *FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        port = await _port(process.stderr)
        # Whatever else it says is read away, so that it never waits for a reader.
        async with asyncio.TaskGroup() as group:
            group.create_task(process.stderr.read())
            try:
                return await _visit(port, page, expressions, width)
            finally:
                process.terminate()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _visit(port: int, page: Path, expressions: tuple[str, ...], width: int) -> Visit:
    seen = Visit()
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json") as answer:
            targets = await answer.json()
        target = next(target for target in targets if target["type"] == "page")
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = _Tab(socket, seen)
            for domain in ("Page", "Network", "Log", "Runtime"):
                await tab.call(f"{domain}.enable")
            metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            await tab.call("Emulation.setDeviceMetricsOverride", **metrics)
            await tab.call("Page.navigate", url=page.as_uri())
            await tab.until("Page.loadEventFired")
            for expression in expressions:
                wanted = {"expression": expression, "returnByValue": True, "awaitPromise": True}
                result = await tab.call("Runtime.evaluate", **wanted)
                seen.answers.append(result["result"].get("value"))
    return seen


async def _port(said: asyncio.StreamReader) -> int:
    """The port that the browser has chosen, which it says once it listens."""
    while line := await said.readline():
        if found := re.search(rb"DevTools listening on ws://[^:]+:(\d+)/", line):
            return int(found[1])
    raise AssertionError("the browser ended without listening")


class _Tab:
    """One page's end of the protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, seen: Visit) -> None:
        self._socket = socket
        self._seen = seen
        self._number = 0
        self._happened: set[str] = set()

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            message = await self._receive()
            if message.get("id") == self._number:
                return dict(message["result"])

    async def until(self, event: str) -> None:
        while event not in self._happened:
            await self._receive()

    async def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._socket.receive_json()
        method = message.get("method", "")
        self._happened.add(method)
        if method == "Network.requestWillBeSent":
            self._seen.requests.append(message["params"]["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self._seen.complaints.append(message)
            # A dialog stops the page until it is answered.
            answer = {"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            await self._socket.send_json(answer)
        elif method in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self._seen.complaints.append(message)
        return message
