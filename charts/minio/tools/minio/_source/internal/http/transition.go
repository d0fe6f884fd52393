// Copyright (c) the trainyard authors. This file is an addition to MinIO Object Storage.
//
// This program is free software: you can redistribute it and/or modify it under the terms of the GNU Affero General
// Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any
// later version. It is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; see that license.

package http

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TransitionEnv names a file with a time in seconds since 1970. Until then a server with a certificate also answers
// without TLS, on the same port: programs that started before it had one continue. Without the file it does not.
const TransitionEnv = "TRAINYARD_PLAIN_UNTIL_FILE"

// The longest time after which a connection without TLS checks whether it may continue.
const transitionCheck = 5 * time.Second

// The first byte of a TLS handshake; no request over HTTP/1 begins with it.
const tlsHandshake = 0x16

func transitionOpen(file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	until, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return err == nil && time.Now().Unix() < until
}

type transitionListener struct {
	net.Listener
	config  *tls.Config
	file    string
	results chan acceptResult
	done    chan struct{}
	once    sync.Once
}

// newTransitionListener returns a listener for TLS, and for plain connections as long as the file allows them.
func newTransitionListener(inner net.Listener, config *tls.Config) net.Listener {
	file := os.Getenv(TransitionEnv)
	if file == "" {
		return tls.NewListener(inner, config)
	}
	l := &transitionListener{
		Listener: inner,
		config:   config,
		file:     file,
		results:  make(chan acceptResult),
		done:     make(chan struct{}),
	}
	go l.run()
	return l
}

func (l *transitionListener) run() {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			if !l.give(acceptResult{err: err}) {
				return
			}
			continue
		}
		go l.sort(conn)
	}
}

func (l *transitionListener) give(result acceptResult) bool {
	select {
	case l.results <- result:
		return true
	case <-l.done:
		return false
	}
}

// sort checks the first byte of a connection. The connection's own deadline ends a client that sends none.
func (l *transitionListener) sort(conn net.Conn) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		conn.Close()
		return
	}
	var sorted net.Conn = &begunConn{Conn: conn, first: first}
	if first[0] == tlsHandshake || !transitionOpen(l.file) {
		sorted = tls.Server(sorted, l.config)
	} else {
		sorted = &plainConn{Conn: sorted, file: l.file, checked: time.Now()}
	}
	if !l.give(acceptResult{conn: sorted}) {
		conn.Close()
	}
}

func (l *transitionListener) Accept() (net.Conn, error) {
	select {
	case result := <-l.results:
		return result.conn, result.err
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *transitionListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// begunConn is a connection that returns the byte that was read to sort it.
type begunConn struct {
	net.Conn
	first []byte
}

func (c *begunConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 && len(b) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// plainConn is a connection that ends with the transition, even if its client keeps it open.
type plainConn struct {
	net.Conn
	file    string
	checked time.Time
}

func (c *plainConn) Read(b []byte) (int, error) {
	if time.Since(c.checked) > transitionCheck {
		if !transitionOpen(c.file) {
			return 0, io.EOF
		}
		c.checked = time.Now()
	}
	return c.Conn.Read(b)
}
