package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// reply is one reply of the model: a tool call, or a text that ends the job.
type reply struct {
	tool   string
	args   any
	text   string
	result string // what the next request must contain, because the call was made
}

// session is what the server replies to one process, and what it has received from it.
type session struct {
	replies []reply
	think   time.Duration // before each reply
	more    bool          // the last reply answers all further requests, too

	mu     sync.Mutex
	served int
	sent   int       // bytes in the bodies of the requests
	first  time.Time // when the first request arrived
	lacks  string    // a result that was not in the request after its call
}

// server plays the model for many processes at once, each below its own path.
type server struct {
	mu       sync.Mutex
	sessions map[string]*session
}

// add returns the path of a new session.
func (s *server) add(new *session) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprint(len(s.sessions))
	s.sessions[id] = new
	return id
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	id, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	playing := s.sessions[id]
	s.mu.Unlock()
	protocol := protocolOf(path)
	if playing == nil || protocol == nil {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	n, next, ok := playing.next(arrived, body)
	if !ok {
		http.Error(w, "the job has ended", http.StatusBadRequest)
		return
	}
	time.Sleep(playing.think)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, protocol(next, fmt.Sprint("call_", n)))
}

// protocolOf returns the function that encodes a reply to a request at a path; nil if there is none. Its argument is the id
// of the reply's tool call.
func protocolOf(path string) func(reply, string) string {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return reply.chat
	case strings.HasSuffix(path, "/responses"):
		return reply.responses
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return reply.content
	}
	return nil
}

// next counts a request, and returns its number and its reply.
func (s *session) next(arrived time.Time, body []byte) (int, reply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served == 0 {
		s.first = arrived
	}
	if n := s.served; n > 0 && n <= len(s.replies) && !bytes.Contains(body, []byte(s.replies[n-1].result)) {
		s.lacks = s.replies[n-1].result
	}
	s.sent += len(body)
	s.served++
	if s.served > len(s.replies) && !s.more {
		return s.served, reply{}, false
	}
	return s.served, s.replies[min(s.served, len(s.replies))-1], true
}

// object is a JSON object.
type object map[string]any

// chat returns the reply in OpenAI's chat protocol.
func (r reply) chat(id string) string {
	delta, why := object{"role": "assistant", "content": r.text}, "stop"
	if r.tool != "" {
		args, _ := json.Marshal(r.args)
		call := object{"index": 0, "id": id, "type": "function", "function": object{"name": r.tool, "arguments": string(args)}}
		delta, why = object{"role": "assistant", "tool_calls": []object{call}}, "tool_calls"
	}
	usage := object{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
	return event(object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": nil}}}) +
		event(object{"choices": []object{{"index": 0, "delta": object{}, "finish_reason": why}}}) +
		event(object{"choices": []object{}, "usage": usage}) +
		"data: [DONE]\n\n"
}

func event(o object) string {
	o["id"], o["object"], o["created"], o["model"] = "reply", "chat.completion.chunk", 1, "bench"
	return data(o)
}

// data returns an event of a stream.
func data(o object) string {
	text, _ := json.Marshal(o)
	return "data: " + string(text) + "\n\n"
}

// fixing returns the replies of the four-turn job.
func fixing() []reply {
	return []reply{
		{tool: "read", args: object{"path": "a.txt"}},
		{tool: "edit", args: object{"path": "a.txt", "edits": []object{{"oldText": "one", "newText": "two"}}}},
		{tool: "bash", args: object{"command": check}},
		{text: "Done."},
	}
}

// longer returns the replies of the same job with n more turns before it, each with another call of a tool that reads one
// of [notes]. The argument has a %d.
func longer(n int, tool, argument, value string) []reply {
	var all []reply
	for i := range n {
		all = append(all, reply{tool: tool, args: object{argument: fmt.Sprintf(value, i)}, result: fmt.Sprintf(note, i)})
	}
	return append(all, fixing()...)
}
