package main

import (
	"strings"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/utils"
)

// From one look at the chains that kube-router sets up once to the next. It asks for all of them before each sync, two
// dozen programs that took most of its time; nobody but kube-proxy, as it starts, puts anything before them.
const lookedAt = 5 * time.Minute

// chains remembers what was there.
type chains struct {
	utils.IPTablesHandler
	said  map[string]any
	until time.Time
}

func recall[T any](c *chains, kept func(T) bool, ask func() (T, error), key ...string) (T, error) {
	if time.Now().After(c.until) {
		c.said, c.until = map[string]any{}, time.Now().Add(lookedAt)
	}
	name := strings.Join(key, "\x00")
	if said, found := c.said[name]; found {
		return said.(T), nil
	}
	said, err := ask()
	if err == nil && kept(said) {
		c.said[name] = said
	}
	return said, err
}

func isThere(there bool) bool { return there }

func (c *chains) ChainExists(table, chain string) (bool, error) {
	ask := func() (bool, error) { return c.IPTablesHandler.ChainExists(table, chain) }
	return recall(c, isThere, ask, "chain", table, chain)
}

func (c *chains) Exists(table, chain string, rule ...string) (bool, error) {
	ask := func() (bool, error) { return c.IPTablesHandler.Exists(table, chain, rule...) }
	return recall(c, isThere, ask, append([]string{"rule", table, chain}, rule...)...)
}

func (c *chains) AppendUnique(table, chain string, rule ...string) error {
	ask := func() (bool, error) { return true, c.IPTablesHandler.AppendUnique(table, chain, rule...) }
	_, err := recall(c, isThere, ask, append([]string{"rule", table, chain}, rule...)...)
	return err
}

func (c *chains) List(table, chain string) ([]string, error) {
	ask := func() ([]string, error) { return c.IPTablesHandler.List(table, chain) }
	return recall(c, func([]string) bool { return true }, ask, "list", table, chain)
}

func (c *chains) Insert(table, chain string, at int, rule ...string) error {
	c.until = time.Time{}
	return c.IPTablesHandler.Insert(table, chain, at, rule...)
}

func (c *chains) Delete(table, chain string, rule ...string) error {
	c.until = time.Time{}
	return c.IPTablesHandler.Delete(table, chain, rule...)
}
