//go:build unix

package mcp

import "syscall"

// ownSession lets a run go on when the client's terminal is closed.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
