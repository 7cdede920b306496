package wall

import (
	"fmt"
	"net"

	"hone/sandbox"
)

// openOutside opens a door in this process's own network, and answers there.
func openOutside(d sandbox.Door) (net.Listener, error) {
	l, err := net.Listen("tcp", d.Addr)
	if err != nil {
		return nil, fmt.Errorf("the door %s: %w", d.Addr, err)
	}
	go serve(l, d.Serve)
	return l, nil
}

// serve answers a door until its listener is closed.
func serve(l net.Listener, answer func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go answer(conn)
	}
}
