//go:build !linux

package main

// onTerminal is not built here: the scripts that use it run on Linux only.
func onTerminal() { panic("there is no pseudo-terminal") }
