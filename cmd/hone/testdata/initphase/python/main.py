"""Keeps short notes in memory for other programs."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

notes: dict[str, str] = {}
ids = count(1)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        note = self.path.removeprefix("/notes/")
        if self.path == "/health":
            self.answer(200, {"status": "ok"})
        elif note in notes:
            self.answer(200, {"id": note, "text": notes[note]})
        else:
            self.answer(404, {"error": "there is no such note"})

    def do_POST(self):
        try:
            text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        except (ValueError, KeyError, TypeError):
            text = ""
        if self.path != "/notes" or not text:
            self.answer(400, {"error": "a note is an object with a text"})
            return
        note = str(next(ids))
        notes[note] = text
        self.answer(201, {"id": note})

    def do_DELETE(self):
        if notes.pop(self.path.removeprefix("/notes/"), None) is None:
            self.answer(404, {"error": "there is no such note"})
        else:
            self.answer(204, None)

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if body is not None:
            self.wfile.write(json.dumps(body).encode())


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
