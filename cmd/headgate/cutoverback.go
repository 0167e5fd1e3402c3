package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"headgate/client"
	"headgate/internal/migrate/cutover"
)

// goBack moves the ports of the last cutover back.
func (c *cutoverRun) goBack(ctx context.Context) error {
	var last client.Cutover
	err := c.to.Do(ctx, http.MethodGet, "/cutover", nil, &last)
	if r := (*client.Problem)(nil); errors.As(err, &r) && r.Code == "not_found" || err == nil && (last.State == string(cutover.Reverted) || last.State == string(cutover.Returned)) {
		return errors.New("there is no cutover to revert; use headgate rollback to return to a revision")
	} else if err != nil {
		return err
	}
	question := fmt.Sprintf("revert the ports to those before revision %08d?", last.Revision)
	if last.State != string(cutover.Pending) {
		var planned client.Cutover
		if err := c.to.Do(ctx, http.MethodDelete, "/cutover?dry_run=true", nil, &planned); err != nil {
			return err
		}
		for _, m := range planned.Moves {
			c.printf("port %s", moveText(m))
		}
		question = "revert?"
	}
	if !*c.yes && !c.confirmed(question) {
		return errors.New("nothing was changed")
	}
	began := time.Now()
	var done client.Cutover
	if err := c.to.Do(ctx, http.MethodDelete, "/cutover", nil, &done); err != nil {
		return fmt.Errorf("revert revision %08d: %w", last.Revision, err)
	}
	c.printf("the ports were reverted after %s", time.Since(began).Round(time.Millisecond))
	if done.Change != nil {
		c.printf("revision %s is active", done.Change.Revision)
	}
	return c.awaitRelease(ctx)
}

// The time limit for the release of addresses after ports have left them, and how often that
// is checked.
const (
	freeWithin = 2 * time.Minute
	freeCheck  = 50 * time.Millisecond
)

// awaitRelease waits until another process can listen at the addresses that ports have left.
func (c *cutoverRun) awaitRelease(ctx context.Context) error {
	end, waiting := time.Now().Add(freeWithin), false
	for {
		var now client.Cutover
		if err := c.to.Do(ctx, http.MethodGet, "/cutover", nil, &now); err != nil {
			return err
		}
		held := strings.Join(now.Held, ", ")
		switch {
		case held == "":
			c.printf("start the old proxy")
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%s: still in use by open connections; run headgate port reset NAME to close them", held)
		case !waiting && time.Until(end) < freeWithin-time.Second:
			waiting = true
			c.printf("waiting for open connections on %s to end; run headgate port reset NAME to close them", held)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted; the ports have moved, but %s is not free yet", held)
		case <-time.After(freeCheck):
		}
	}
}

// How often a cutover is looked at while headgate watches it, and how many times in a row
// that may fail.
const (
	followEvery = time.Second
	maxFailures = 5
)

// follow waits until headgate has confirmed or reverted the cutover.
func (c *cutoverRun) follow(ctx context.Context, done client.Cutover) error {
	if done.Watch == nil {
		return errors.New("headgate does not watch the change; run headgate confirm to keep it")
	}
	c.printf("watching until %s", done.Watch.Until.Local().Format(time.DateTime))
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			c.printf("headgate continues to watch revision %08d, and confirms or reverts it by %s; run headgate confirm or headgate cutover --back to decide now", done.Revision, done.Watch.Until.Local().Format(time.DateTime))
			return context.Cause(ctx)
		case <-tick.C:
		}
		var now client.Cutover
		if err := c.to.Do(ctx, http.MethodGet, "/cutover", nil, &now); err != nil {
			if failures++; failures >= maxFailures && ctx.Err() == nil {
				return fmt.Errorf("%w; unless it is confirmed, the change is reverted by %s", err, done.Until.Local().Format(time.DateTime))
			}
			continue
		}
		failures = 0
		switch {
		case now.Revision != done.Revision, now.Watch == nil && now.State == string(cutover.Pending):
			return fmt.Errorf("revision %08d is no longer watched; run headgate confirm to keep it, otherwise it is reverted by %s", done.Revision, done.Until.Local().Format(time.DateTime))
		case now.Watch != nil && now.Watch.Result == "":
			continue // it ends soon after a decision
		}
		return c.finish(ctx, &now)
	}
}

// finish prints how a cutover ended.
func (c *cutoverRun) finish(ctx context.Context, now *client.Cutover) error {
	reason := ""
	if now.Watch != nil {
		reason = now.Watch.Reason
	}
	switch {
	case now.State == string(cutover.Confirmed) && now.Watch != nil && now.Watch.Result == cutover.ResultConfirmed:
		c.printf("revision %08d confirmed; keep the configuration of the old proxy until you are sure. To go back, run headgate cutover --back", now.Revision)
		return nil
	case now.State == string(cutover.Confirmed):
		c.printf("the change was confirmed elsewhere")
		return nil
	case now.State == string(cutover.Pending):
		return fmt.Errorf("%s; the ports are reverted by %s unless the change is confirmed", reason, now.Until.Local().Format(time.DateTime))
	case now.Watch == nil || now.Watch.Result != cutover.ResultReverted:
		c.printf("the change was reverted elsewhere")
	default:
		c.printf("%s; the ports were reverted", reason)
	}
	if err := c.awaitRelease(ctx); err != nil {
		return err
	}
	return errors.New("the cutover was reverted")
}
