"""A client of a language server, as editors are: it opens a file, and asks what stands at a place of it."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

SERVERS = ("basedpyright-langserver", "pyright-langserver")


def server() -> str | None:
    """The program of a language server, in this environment or on the path."""
    here = str(Path(sys.executable).parent)
    return next((found for name in SERVERS if (found := shutil.which(name, path=here) or shutil.which(name))), None)


class LanguageServer:
    """A server that has been started for the files in a folder."""

    def __init__(self, program: str, folder: Path, package: Path) -> None:
        self._process = subprocess.Popen(
            [program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
        )
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._complaints: queue.Queue[list[str]] = queue.Queue()
        self._number = 0
        analysis = {"extraPaths": [str(package)], "diagnosticMode": "openFilesOnly"}
        self._settings = {**analysis, "analysis": analysis}  # which of them depends on the section that is asked for
        threading.Thread(target=self._listen, daemon=True).start()
        place = {"uri": folder.as_uri(), "name": "tests"}
        capabilities = {
            "textDocument": {
                "hover": {"contentFormat": ["plaintext"]},
                "completion": {"completionItem": {"documentationFormat": ["plaintext"]}},
            },
            "workspace": {"configuration": True},
        }
        self.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": place["uri"],
                "workspaceFolders": [place],
                "capabilities": capabilities,
            },
        )
        self._send({"method": "initialized", "params": {}})

    def open(self, path: Path, text: str) -> None:
        """Open a file with this text."""
        document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def hover(self, path: Path, line: int, column: int) -> str:
        """What an editor shows beside the pointer."""
        found = self.ask("textDocument/hover", self._place(path, line, column))
        return str(found["contents"]["value"]) if found else ""

    def completions(self, path: Path, line: int, column: int) -> list[str]:
        """The names that an editor offers."""
        found = self.ask("textDocument/completion", self._place(path, line, column))
        return [each["label"] for each in (found["items"] if isinstance(found, dict) else found or [])]

    def complaints(self) -> list[str]:
        """What the server says is wrong with the open file."""
        return self._complaints.get(timeout=240)

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The answer to a request."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            answer = self._answers.get(timeout=240)
            if answer.get("id") == self._number and "method" not in answer:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()

    def _place(self, path: Path, line: int, column: int) -> dict[str, Any]:
        return {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": column}}

    def _send(self, message: dict[str, Any]) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
        self._process.stdin.flush()

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while head := stream.readline():
            length = int(head.split(b":")[1])
            while stream.readline().strip():
                pass
            message = json.loads(stream.read(length))
            if "method" in message and "id" in message:  # the server asks for settings, and for leave
                items = message.get("params", {}).get("items", [])
                result = [self._settings for _ in items] if message["method"] == "workspace/configuration" else None
                self._send({"id": message["id"], "result": result})
            elif message.get("method") == "textDocument/publishDiagnostics":
                self._complaints.put([each["message"] for each in message["params"]["diagnostics"]])
            else:
                self._answers.put(message)
