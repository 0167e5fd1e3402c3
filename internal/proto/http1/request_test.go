package http1

import (
	"testing"

	"headgate/internal/proto/header"
)

func parse(t *testing.T, head string) (*RequestHead, error) {
	t.Helper()
	req := &RequestHead{}
	n, err := ParseRequest([]byte(head), &Limits{}, req)
	if err == nil && n != len(head) {
		t.Fatalf("used %d of %d bytes of %q", n, len(head), head)
	}
	return req, err
}

func TestRequestIsTakenApart(t *testing.T) {
	req, err := parse(t, browserHead)
	if err != nil {
		t.Fatal(err)
	}
	got := [...]string{req.Method, req.Target, req.Path, req.Query, req.Authority, req.Host, req.Port}
	want := [...]string{"GET", "/assets/app/main.js?v=20240117", "/assets/app/main.js", "?v=20240117",
		"shop.example.com", "shop.example.com", ""}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if req.MethodID != Get || req.Minor != 1 || !req.KeepAlive || req.Framing != NoBody {
		t.Errorf("got %+v", req)
	}
	if n, ua := req.Fields.Len(), req.Fields.Get(header.UserAgent); n != 9 || ua == "" {
		t.Errorf("got %d fields, User-Agent %q", n, ua)
	}
}
