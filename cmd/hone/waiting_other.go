//go:build !linux

package main

import "os"

// waitingBytes returns 0: only Linux knows the number.
func waitingBytes(*os.File) int { return 0 }
