package wall

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// dialLoopback connects to a TCP port of this machine: at 127.0.0.1, or at ::1 if that
// fails.
func dialLoopback(ctx context.Context, port int) (net.Conn, error) {
	var d net.Dialer
	conn, first := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if first == nil || ctx.Err() != nil {
		return conn, first
	}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("::1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("%w; %w", first, err)
	}
	return conn, nil
}
