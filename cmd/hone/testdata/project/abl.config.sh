#!/bin/bash
# The service answers by src/routes: a path, a status and a text in each line.
port=3000
logs=tests/results

case "$1" in
  health_check)
    bad=$(grep -nvE '^/[a-z]* [0-9]{3} ' src/routes) || exit 0
    echo "src/routes:$bad" > $logs/lint.log
    exit 1
    ;;
  start_dev)
    /usr/bin/python3 -SE -c '
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        client, _ = server.accept()
        with client:
            asked = client.recv(4096).split()
            for line in open("src/routes") if asked else []:
                path, status, text = line.split(" ", 2)
                if path == asked[1].decode():
                    client.sendall(f"HTTP/1.0 {status} x\r\n\r\n{text}".encode())
                    break
            else:
                client.sendall(b"HTTP/1.0 404 x\r\n\r\n")
' $port > $logs/dev.log 2>&1 &
    ;;
  reset_state) ;;
  map_deps) echo 'no dependencies' ;;
  *) exit 1 ;;
esac
