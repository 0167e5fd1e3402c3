package acme

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// hetzner writes records by the Cloud API of Hetzner, which adds values to a set and
// removes them. A change is answered with an action that runs later.
type hetzner struct{ restAPI }

func openHetzner(d *DNS) (provider, error) {
	return hetzner{newAPI(d, "https://api.hetzner.cloud/v1", "Authorization", "Bearer "+d.Credentials["api_token"])}, nil
}

func (hetzner) wantsZone() bool { return true }

// hetznerAction is a change that was begun.
type hetznerAction struct {
	Action struct {
		ID     int64
		Status string // running, success or error
		Error  struct{ Code, Message string }
	}
}

func (h hetzner) act(ctx context.Context, zone, name, action string, body map[string]any) error {
	var a hetznerAction
	path := "/zones/" + url.PathEscape(zone) + "/rrsets/" + url.PathEscape(belowAt(name, zone)) + "/TXT/actions/" + action
	if err := h.request(ctx, http.MethodPost, path, body, &a); err != nil {
		return err
	}
	return settled(ctx, func() (bool, error) {
		switch a.Action.Status {
		case "success":
			return true, nil
		case "error":
			return false, fmt.Errorf("action %d (%s) failed: %s", a.Action.ID, action, cut(a.Action.Error.Code+": "+a.Action.Error.Message))
		}
		return false, h.request(ctx, http.MethodGet, fmt.Sprintf("/actions/%d", a.Action.ID), nil, &a)
	})
}

func (h hetzner) present(ctx context.Context, zone, name, value string) error {
	return h.act(ctx, zone, name, "add_records", map[string]any{"ttl": recordTTL, "records": []map[string]string{{"value": `"` + value + `"`}}})
}

func (h hetzner) cleanUp(ctx context.Context, zone, name, value string) error {
	err := h.act(ctx, zone, name, "remove_records", map[string]any{"records": []map[string]string{{"value": `"` + value + `"`}}})
	if gone(err) {
		return nil
	}
	return err
}

// How long a change may run at a provider, and the pauses between two looks at it.
const (
	changeTime  = 2 * time.Minute
	firstPause  = 100 * time.Millisecond
	longerPause = 5 * time.Second
)

// settled waits until look reports that a change is complete, or that it failed. Some
// providers respond before they have made a change.
func settled(ctx context.Context, look func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longerPause) {
		done, err := look()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the change was taken, but is not done: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}
