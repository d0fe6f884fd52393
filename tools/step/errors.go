package main

import (
	"errors"
	"fmt"
)

// Exit codes of the program's own errors, after sysexits.h; a command that fails gives its own code.
const (
	codeUsage = 64
	codeData  = 65
	codeStore = 69
)

// stepError is an error with the exit code that the container ends with.
type stepError struct {
	code    int
	message string
}

func (e stepError) Error() string { return e.message }

func errorf(code int, format string, values ...any) error {
	return stepError{code, fmt.Sprintf(format, values...)}
}

func exitCode(err error) int {
	var known stepError
	if errors.As(err, &known) {
		return known.code
	}
	return codeData
}
