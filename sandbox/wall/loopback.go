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
	return inTurn(ctx, []string{"127.0.0.1", "::1"}, func(host string) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	})
}

func inTurn[T any](ctx context.Context, places []T, connect func(T) (net.Conn, error)) (net.Conn, error) {
	var failed error
	for _, place := range places {
		conn, err := connect(place)
		if err == nil {
			return conn, nil
		}
		if failed == nil {
			failed = err
		} else {
			failed = fmt.Errorf("%w; %w", failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}
