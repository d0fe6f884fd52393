package main

import (
	"regexp"
	"strings"
	"sync"
)

const (
	tailBytes = 64 * 1024
	tailLines = 5
)

var colour = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// tail keeps the end of what a command writes to both of its outputs.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(some []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, some...)
	if len(t.kept) > 2*tailBytes {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-tailBytes:]...)
	}
	return len(some), nil
}

// failure is the part that says why: the last Python exception without its frames, else the last lines.
func (t *tail) failure() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := colour.ReplaceAllString(strings.ToValidUTF8(string(t.kept), "?"), "")
	var lines []string
	start := -1
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line[strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r')+1:], " \r\t")
		if line == "" {
			continue
		}
		lines = append(lines, line)
		if strings.HasPrefix(line, "Traceback (most recent call last)") {
			start = len(lines)
		}
	}
	if start >= 0 {
		for start < len(lines) && strings.HasPrefix(lines[start], " ") {
			start++
		}
	}
	if start < 0 || start >= len(lines) {
		start = max(0, len(lines)-tailLines)
	}
	return clip(strings.Join(lines[start:], "\n"))
}

// clip keeps the beginning, which names the exception, and the end of a text that is too long for a message.
func clip(text string) string {
	const room = messageLimit - 100 // for what stands before it
	if len(text) <= room {
		return text
	}
	return strings.ToValidUTF8(text[:room/2], "") + " … " + strings.ToValidUTF8(text[len(text)-room/2+8:], "")
}
