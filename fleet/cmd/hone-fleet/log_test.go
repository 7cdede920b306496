package main

import (
	"bytes"
	"errors"
	"testing"
)

// TestSDKLog: what Temporal's SDK logs is a message of this program, and is not repeated.
func TestSDKLog(t *testing.T) {
	var said bytes.Buffer
	l := &sdkLog{app: &app{err: &said}}
	l.Info("Started Worker", "Namespace", "default")
	for range 3 {
		l.Warn("Failed to poll for task.", "Namespace", "default", "Error", errors.New("unavailable"))
		l.Error("Activity error.", "WorkflowID", "hone:b:j", "RunID", "r", "Error", errors.New("the disk is full\x1b[2J"))
	}
	want := "hone-fleet: warning: Failed to poll for task: unavailable\n" +
		"hone-fleet: error: hone:b:j: Activity error: the disk is full\\x1b[2J\n"
	if said.String() != want {
		t.Errorf("got  %q\nwant %q", said.String(), want)
	}
}
