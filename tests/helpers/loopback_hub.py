"""A Hugging Face hub on loopback: repositories are directories, and transfers can go wrong."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "c0ffee" + "0" * 34
LARGE = (".safetensors", ".bin", ".spm", ".model", ".gguf")  # what the hub keeps apart, with a sha256


@dataclass
class Hub:
    """What is served, and how it misbehaves."""

    root: Path  # owner/name/files
    break_after: dict[str, int] = field(
        default_factory=dict
    )  # file → bytes until the connection is closed, once
    missing: set[str] = field(default_factory=set)  # listed, but not there
    wrong: set[str] = field(default_factory=set)  # sent with another byte than it has
    requests: list[str] = field(default_factory=list)
    endpoint: str = ""

    def files(self, repository: str) -> list[Path]:
        return sorted(path for path in (self.root / repository).rglob("*") if path.is_file())

    def listing(self, repository: str) -> list[dict[str, Any]]:
        return [self.described(repository, path) for path in self.files(repository)]

    def described(self, repository: str, path: Path) -> dict[str, Any]:
        content = path.read_bytes()
        git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        entry: dict[str, Any] = {
            "rfilename": path.relative_to(self.root / repository).as_posix(),
            "size": len(content),
            "blobId": git,
        }
        if path.suffix in LARGE:
            sha = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {"sha256": sha, "size": len(content), "pointerSize": 130}
        return entry


@contextmanager
def serving(root: Path) -> Iterator[Hub]:
    """A hub that serves a directory of repositories."""
    hub = Hub(root)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _answer(self, body: bool) -> None:
            path = self.path.partition("?")[0]
            hub.requests.append(f"{self.command} {path}")
            if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(/revision/[^/]+)?", path):
                self._model(match[1])
            elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/[^/]+", path):
                self._tree(match[1])
            elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
                self._file(match[1], match[2], body)
            else:
                self._refuse("EntryNotFound")

        def _model(self, repository: str) -> None:
            if not (hub.root / repository).is_dir():
                self._refuse("RepoNotFound")
                return
            self._json({"id": repository, "sha": COMMIT, "siblings": hub.listing(repository)})

        def _tree(self, repository: str) -> None:
            self._json(
                [
                    {
                        "type": "file",
                        "path": entry["rfilename"],
                        "size": entry["size"],
                        "oid": entry["blobId"],
                        **(
                            {"lfs": {**entry["lfs"], "oid": entry["lfs"]["sha256"]}} if "lfs" in entry else {}
                        ),
                    }
                    for entry in hub.listing(repository)
                ]
            )

        def _file(self, repository: str, name: str, body: bool) -> None:
            path = hub.root / repository / name
            if not path.is_file() or name in hub.missing:
                self._refuse("EntryNotFound")
                return
            entry = hub.described(repository, path)
            content = path.read_bytes()
            if name in hub.wrong:
                content = bytes([content[0] ^ 1]) + content[1:]
            start = 0
            if wanted := re.fullmatch(r"bytes=(\d+)-\d*", self.headers.get("Range", "")):
                start = int(wanted[1])
            self.send_response(206 if start else 200)
            etag = entry["lfs"]["sha256"] if "lfs" in entry else entry["blobId"]
            self.send_header("ETag", f'"{etag}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(content) - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            if not body:
                return
            limit = hub.break_after.pop(name, None)
            self.wfile.write(content[start:][: limit if limit is not None else len(content)])
            if limit is not None:
                self.close_connection = True
                self.connection.close()

        def _json(self, value: object) -> None:
            content = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _refuse(self, code: str) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
