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
	lock    sync.Mutex
	printed map[string]time.Time // by text
}

func (l *sdkLog) Debug(string, ...any) {}
func (l *sdkLog) Info(string, ...any)  {}

func (l *sdkLog) Warn(what string, values ...any)  { l.print("warning", logText(what, values)) }
func (l *sdkLog) Error(what string, values ...any) { l.print("error", logText(what, values)) }

func (l *sdkLog) print(kind, text string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if time.Since(l.printed[text]) < time.Minute {
		return
	}
	if l.printed == nil {
		l.printed = map[string]time.Time{}
	}
	l.printed[text] = time.Now()
	l.app.say(kind, text)
}

// logText returns what the SDK logs, with the workflow and the error, if there are any.
func logText(what string, values []any) string {
	text := strings.TrimSuffix(what, ".")
	for i := 0; i+1 < len(values); i += 2 {
		switch values[i] {
		case "WorkflowID":
			text = fmt.Sprintf("%v: %s", values[i+1], text)
		case "Error", "error":
			text = fmt.Sprintf("%s: %v", text, values[i+1])
		}
	}
	return text
}
