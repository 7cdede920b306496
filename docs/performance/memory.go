package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sample measures the memory of a process and its descendants until the returned function is called. That returns the most
// that they had together: resident, and with shared memory counted once; 0 except on Linux.
func sample(pid int) func() (rss, pss float64) {
	stop, done := make(chan bool), make(chan bool)
	var rss, pss float64
	go func() {
		defer close(done)
		for {
			r, p := memory(pid)
			rss, pss = max(rss, r), max(pss, p)
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() (float64, float64) {
		close(stop)
		<-done
		return rss, pss
	}
}

// memory returns the memory of a process and its descendants now.
func memory(pid int) (rss, pss float64) {
	for _, pid := range descendants(pid) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) < 2 {
				continue
			}
			kb, _ := strconv.ParseFloat(fields[1], 64)
			switch fields[0] {
			case "Rss:":
				rss += kb * 1024
			case "Pss:":
				pss += kb * 1024
			}
		}
	}
	return rss, pss
}

// descendants returns a process and all that come from it and run.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // before it is the name, which may be any text
		if err != nil || len(fields) < 2 {
			continue
		}
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		parent, _ := strconv.Atoi(string(fields[1]))
		children[parent] = append(children[parent], child)
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}
