package api

import (
	"errors"
	"net/http"
	"testing"

	"headgate/client"
)

// TestClient uses package client as a program of others does: it creates, reads, changes and
// deletes objects and users.
func TestClient(t *testing.T) {
	h := start(t)
	c, err := client.New(client.Options{URL: h.server.URL, Token: h.tokens["admin"], Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := c.CreateUser(ctx, &client.User{Name: "cleo", Role: "editor", Password: good}); err != nil {
		t.Fatal(err)
	}
	names := ""
	for u, err := range c.ListUsers(ctx, client.Query("limit", "1")) {
		if err != nil {
			t.Fatal(err)
		}
		names += u.Name + " "
	}
	if names != "ann bob cleo " {
		t.Errorf("users are %s", names)
	}
	off, tag := false, ""
	if _, err := c.CreateProxy(ctx, &client.ProxyObject{Name: "new", VirtualHosts: []string{"new.example.com"}, Active: &off, Routes: []client.Route{{FixedResponse: &client.FixedResponse{Status: http.StatusNoContent}}}}); err != nil {
		t.Fatal(err)
	}
	p, err := c.GetProxy(ctx, "new", client.ETag(&tag))
	if err != nil || p.Name != "new" || p.Active == nil || *p.Active || len(p.Routes) != 1 {
		t.Fatalf("the proxy is %+v, %v", p, err)
	}
	if _, err := c.UpdateProxy(ctx, "new", map[string]any{"description": "first"}, client.IfMatch(tag)); err != nil {
		t.Fatal(err)
	}
	var stale *client.Problem
	if _, err := c.UpdateProxy(ctx, "new", map[string]any{"description": "second"}, client.IfMatch(tag)); !errors.As(err, &stale) || stale.Status != http.StatusPreconditionFailed {
		t.Errorf("a change of an older proxy returned %v", err)
	}
	if p, err = c.GetProxy(ctx, "new"); err != nil || p.Description != "first" {
		t.Errorf("the proxy is %+v, %v", p, err)
	}
	p.Description = "third"
	if _, err := c.ReplaceProxy(ctx, "new", p, client.DryRun()); err != nil { // what was read can be written
		t.Error(err)
	}
	if status, err := c.GetStatus(ctx, client.Query("proxy", "new")); err != nil || status.ETag == "" {
		t.Errorf("the status is %+v, %v", status, err)
	}
	if err := c.DeleteProxy(ctx, "new"); err != nil {
		t.Error(err)
	}
}
