package wall

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/loopback"
)

// A command's network that is its own is reached by sockets of its own: the
// keeper, which is in there, makes them, and this process connects them. So it
// is here that is said where they lead, and nothing in there can say otherwise.

// give hands sockets of the command's network to the caller.
func (k *keeper) give(request int) {
	fds, err := loopback.Sockets()
	reply := &given{To: request}
	if err != nil {
		reply.Fail = failureOf(err)
	}
	_ = k.send(message{Given: reply}, fds...) // without a caller it ends anyway
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// requests are those for sockets that the keeper has not answered yet. The zero
// requests are none.
type requests struct {
	mu      sync.Mutex
	last    int
	waiting map[int]chan<- answer
	over    bool // the control is closed, or about to be
}

// answer is what became of a request.
type answer struct {
	sockets []*os.File
	err     error
}

// ask asks the keeper for sockets. The request is to be dropped in the end.
func (r *requests) ask(c control) (number int, answers <-chan answer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return 0, nil, sandbox.ErrEnded
	}
	number = r.last + 1
	if err := c.sendNow(message{Give: number}); err != nil {
		return 0, nil, fmt.Errorf("ask its walls for a socket: %w", err)
	}
	if r.waiting == nil {
		r.waiting = map[int]chan<- answer{}
	}
	given := make(chan answer, 1)
	r.last, r.waiting[number] = number, given
	return number, given, nil
}

// answer hands on what came for a request; nobody may wait for it any more.
func (r *requests) answer(g given, fds []int) {
	var a answer
	for _, fd := range fds {
		a.sockets = append(a.sockets, os.NewFile(uintptr(fd), "socket"))
	}
	if g.Fail != nil {
		a.err = g.Fail.err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, ok := r.waiting[g.To]
	if !ok {
		closeFiles(a.sockets)
		return
	}
	delete(r.waiting, g.To)
	waiting <- a // there is room for it
}

// drop gives up a request, and what came for it and was not taken.
func (r *requests) drop(number int, answers <-chan answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, number)
	select {
	case a := <-answers:
		closeFiles(a.sockets)
	default:
	}
}

// end lets no more requests be made, as the control is to be closed.
func (r *requests) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// sockets are new sockets of the command's network.
func (l *walled) sockets(ctx context.Context) ([]*os.File, error) {
	number, answers, err := l.requests.ask(l.control)
	if err != nil {
		return nil, err
	}
	defer l.requests.drop(number, answers)
	select {
	case a := <-answers:
		return a.sockets, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dial connects to a port of the command's own network.
func (l *walled) dial(ctx context.Context, port int) (net.Conn, error) {
	sockets, err := l.sockets(ctx)
	if err != nil {
		return nil, err
	}
	defer closeFiles(sockets)
	return loopback.Connect(ctx, sockets, port)
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
