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

// ending is what a command wrote at last. Its errors are kept apart too: what Python holds back of its other output comes
// after the exception, when it ends.
type ending struct{ all, errors *tail }

func newEnding() *ending { return &ending{&tail{}, &tail{}} }

// failure is the part that says why: the last Python exception without its frames, else what calls itself an error, else
// the last lines. The errors' own output is asked first: which of two outputs is read first is chance.
func (e *ending) failure() string {
	for _, find := range []func(*tail) string{(*tail).exception, (*tail).complaint} {
		for _, output := range []*tail{e.errors, e.all} {
			if said := find(output); said != "" {
				return said
			}
		}
	}
	return clip(strings.Join(e.all.last(), "\n"))
}

// complaint is the last lines from the one on that calls itself an error, "" when none does.
func (t *tail) complaint() string {
	lines := t.last()
	for i, line := range lines {
		if strings.HasPrefix(line, "error: ") {
			return clip(strings.Join(lines[i:], "\n"))
		}
	}
	return ""
}

func (t *tail) last() []string {
	lines := t.lines()
	return lines[max(0, len(lines)-tailLines):]
}

// exception is the last Python exception without its frames, "" when there is none.
func (t *tail) exception() string {
	lines := t.lines()
	start := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "Traceback (most recent call last)") {
			start = i + 1
		}
	}
	if start == 0 {
		return ""
	}
	for start < len(lines) && strings.HasPrefix(lines[start], " ") {
		start++
	}
	return clip(strings.Join(lines[start:], "\n"))
}

// lines are those that are not empty, without colours and without what a progress bar has overwritten.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := colour.ReplaceAllString(strings.ToValidUTF8(string(t.kept), "?"), "")
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line[strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r')+1:], " \r\t")
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// clip keeps the beginning, which names the exception, and the end of a text that is too long for a message.
func clip(text string) string {
	const room = messageLimit - 100 // for what stands before it
	if len(text) <= room {
		return text
	}
	return strings.ToValidUTF8(text[:room/2], "") + " … " + strings.ToValidUTF8(text[len(text)-room/2+8:], "")
}
