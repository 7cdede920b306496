package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// sdkLog prints the warnings and errors of Temporal's SDK as messages of this program. It
// prints the same text at most once a minute: while a server is down, each poller logs
// every few seconds.
type sdkLog struct {
	app     *app
	printed sync.Map // times, by text
}

func (l *sdkLog) Debug(string, ...any) {}
func (l *sdkLog) Info(string, ...any)  {}

func (l *sdkLog) Warn(what string, values ...any)  { l.print("warning", what, values) }
func (l *sdkLog) Error(what string, values ...any) { l.print("error", what, values) }

func (l *sdkLog) print(kind, what string, values []any) {
	text := strings.TrimSuffix(what, ".")
	for i := 0; i+1 < len(values); i += 2 {
		switch values[i] {
		case "WorkflowID":
			text = fmt.Sprintf("%v: %s", values[i+1], text)
		case "Error", "error":
			text = fmt.Sprintf("%s: %v", text, values[i+1])
		}
	}
	last, _ := l.printed.Swap(text, time.Now())
	if at, ok := last.(time.Time); ok && time.Since(at) < time.Minute {
		l.printed.Store(text, at)
		return
	}
	l.app.say(kind, text)
}
