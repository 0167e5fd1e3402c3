package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/ports"
)

// goBack gives ports the addresses before the last cutover.
func (c *cutover) goBack(ctx context.Context) error {
	if err := c.to.call(ctx, http.MethodGet, "/status", nil, &c.status); err != nil {
		return err
	}
	last, err := c.last(ctx)
	if err != nil {
		return err
	}
	if p := c.status.Pending; p != nil && strings.TrimLeft(p.Revision, "0") == strconv.Itoa(last.Number) {
		if !*c.yes && !c.confirmed("revert the ports to those before revision "+p.Revision+"?") {
			return errors.New("nothing was changed")
		}
		if err := c.revert(ctx, p.Revision); err != nil {
			return err
		}
		return c.letGo(ctx, reversed(movesOf(last.Why)))
	}
	moves := slices.DeleteFunc(reversed(movesOf(last.Why)), func(m move) bool {
		return !slices.ContainsFunc(c.status.Ports, func(p ports.State) bool {
			return p.Name == m.name && p.Address == m.from.String() && p.State != "draining"
		})
	})
	if len(moves) == 0 {
		return fmt.Errorf("the ports of the cutover in revision %d have been changed since; nothing was changed", last.Number)
	}
	for _, m := range moves {
		c.printf("port %s", m)
	}
	if !*c.yes && !c.confirmed("revert?") {
		return errors.New("nothing was changed")
	}
	done, err := c.apply(ctx, moves, backWhy, 0)
	if err != nil {
		return err
	}
	c.printf("revision %s is active", done.Revision)
	return c.letGo(ctx, moves)
}

// How long it may take until the addresses that were left are free.
const (
	freeWithin = 2 * time.Minute
	freeCheck  = 50 * time.Millisecond
)

// letGo waits until another process can have the addresses that ports have left.
func (c *cutover) letGo(ctx context.Context, moves []move) error {
	end, reported := time.Now().Add(freeWithin), false
	for {
		var now cutoverStatus
		if err := c.to.call(ctx, http.MethodGet, "/status", nil, &now); err != nil {
			return err
		}
		held := heldOf(now.Ports, moves)
		switch {
		case len(held) == 0:
			c.printf("start the old proxy")
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%s: still in use by open connections; run headgate port reset NAME to close them", strings.Join(held, ", "))
		case !reported && time.Until(end) < freeWithin-time.Second:
			reported = true
			c.printf("waiting for open connections on %s to end; run headgate port reset NAME to close them", strings.Join(held, ", "))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted; the ports have moved, but %s is not free yet", strings.Join(held, ", "))
		case <-time.After(freeCheck):
		}
	}
}

// heldOf returns the ports that still have an address that they were moved from.
func heldOf(all []ports.State, moves []move) (held []string) {
	for _, p := range all {
		for _, m := range moves {
			if p.Holds && p.Address == m.from.String() {
				held = append(held, p.Name+" "+p.Address)
			}
		}
	}
	return slices.Compact(held)
}

// last returns the last cutover that was not reverted.
func (c *cutover) last(ctx context.Context) (*revision, error) {
	var page struct {
		Items []revision `json:"items"`
	}
	if err := c.to.call(ctx, http.MethodGet, "/revisions?limit=1000", nil, &page); err != nil {
		return nil, err
	}
	for i := range page.Items {
		r := &page.Items[i]
		if strings.HasPrefix(r.Why, backWhy) {
			break
		}
		if strings.HasPrefix(r.Why, cutoverWhy) && r.State != "rolled_back" {
			return r, nil
		}
	}
	return nil, errors.New("there is no cutover to revert; use headgate rollback to return to a revision")
}

// revert takes a change back at once that waits.
func (c *cutover) revert(ctx context.Context, revision string) error {
	began := time.Now()
	if err := c.to.call(ctx, http.MethodPost, "/revert", map[string]string{"revision": revision}, &json.RawMessage{}); err != nil {
		return fmt.Errorf("revert revision %s: %w", revision, err)
	}
	c.printf("the ports were reverted after %s", time.Since(began).Round(time.Millisecond))
	return nil
}

// movesOf parses the reason of a cutover.
func movesOf(why string) (moves []move) {
	for _, found := range movePattern.FindAllStringSubmatch(strings.TrimPrefix(why, cutoverWhy), -1) {
		from, err1 := netip.ParseAddrPort(found[2])
		to, err2 := netip.ParseAddrPort(found[3])
		if err1 == nil && err2 == nil {
			moves = append(moves, move{found[1], from, to})
		}
	}
	return moves
}

// reversed are moves the other way.
func reversed(moves []move) []move {
	out := make([]move, len(moves))
	for i, m := range moves {
		out[i] = move{m.name, m.to, m.from}
	}
	return out
}
