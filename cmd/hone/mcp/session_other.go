//go:build !unix

package mcp

import "syscall"

func ownSession() *syscall.SysProcAttr { return nil }
