package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// awaitGroup returns when no process of the group runs any longer, or after the time given. Children whose parent has
// gone may stay as zombies, so it reads /proc instead of asking by a signal.
func awaitGroup(group int, longest time.Duration) {
	for end := time.Now().Add(longest); groupRuns(group) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
}

func groupRuns(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state parent group …; the name may hold anything, also parentheses
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && string(fields[0]) != "Z" {
			return true
		}
	}
	return false
}
