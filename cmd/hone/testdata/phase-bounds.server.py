"""A web service that tries to cross boundaries by itself, and answers with a canary."""
import os
import socket
import subprocess
import sys
import threading

port, token = int(sys.argv[1]), sys.argv[2]


def answer(listener, text):
    while True:
        client, _ = listener.accept()
        with client:
            if listener.family == socket.AF_INET:
                client.recv(4096)
            client.sendall(text)


try:
    aside = socket.socket(socket.AF_UNIX)
    aside.bind("\0" + token + "-server")
    aside.listen()
    threading.Thread(target=answer, args=(aside, b"canary-" + b"aside"), daemon=True).start()
except PermissionError as e:
    print("no Unix sockets:", e, flush=True)
if not os.path.exists("tests/results/server.tried"):
    with open("tests/results/server.tried", "wb") as out:
        subprocess.run(["bash", "src/probe.sh", "server", "hooks", "src", "tests", "."], stdout=out, stderr=out)
server = socket.create_server(("127.0.0.1", port))
answer(server, b"HTTP/1.0 200 OK\r\n\r\ncanary-" + b"server\n")
