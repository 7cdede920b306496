package wall

import (
	"fmt"
	"os"
	"sync"

	"hone/sandbox"
)

// A command's own network is reached through sockets made in it: the keeper
// makes them there, and this process connects them. So this process decides
// where they lead, and nothing behind the walls can change that.

// requests are requests for sockets that the keeper has not answered yet. The
// zero value is ready to use.
type requests struct {
	mu      sync.Mutex
	last    int
	waiting map[int]chan<- answer
	over    bool // the control is or will be closed
}

type answer struct {
	sockets []*os.File
	err     error
}

// The caller must drop the request in the end.
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

// The sockets are closed if the request was dropped.
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
	waiting <- a // never blocks: the channel has room for one
}

// The sockets of an answer that was not received are closed.
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

// The control will be closed.
func (r *requests) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
