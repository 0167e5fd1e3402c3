package api

import (
	"testing"

	"headgate/internal/pair"
	"headgate/internal/store"
	"headgate/internal/store/local"
)

// leading returns the store of a machine that leads a pair, whose follower is away.
func leading(t testing.TB) *pair.Store {
	t.Helper()
	dir := t.TempDir()
	files, err := local.Open(local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Init(t.Context(), files, "a", "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	id, err := pair.LoadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pair.Open(t.Context(), pair.Options{Files: files, Identity: id})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// pair leads a pair of machines.
func (s *scene) pair() {
	s.does(409, "GET", "/pair", "")
	s.does(409, "POST", "/pair/invitations", `{}`)
	s.does(409, "DELETE", "/pair/members/b", "")
	s.does(409, "POST", "/pair/promote", `{"alone":true}`)

	p := leading(s.h.t)
	s.h.api.Pair = p
	defer func() { s.h.api.Pair = nil }()
	// The state of the pair is not that of the scenes, so its audit is looked at here.
	does := func(status int, method, path, body, action string) {
		s.h.t.Helper()
		before := last(s.h.t, p)
		if w, out := s.call(method, path, body); w.Code != status {
			s.h.t.Errorf("%s %s: got %d %v, want %d", method, path, w.Code, out, status)
		}
		after := last(s.h.t, p)
		if grew := after > before; grew != (action != "") {
			s.h.t.Errorf("%s %s: the audit has %d records, before %d", method, path, after, before)
		}
	}
	does(200, "GET", "/pair", "", "")
	does(200, "POST", "/pair/invitations?dry_run=true", `{"name":"b"}`, "")
	does(201, "POST", "/pair/invitations", `{"name":"b"}`, "node.invite")
	does(409, "POST", "/pair/invitations", `{"name":"a"}`, "")
	does(404, "DELETE", "/pair/members/b", "", "")
	does(409, "DELETE", "/pair/members/a", "", "")
	if _, err := p.Commit(s.h.t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixGroupMember + "b", Value: []byte(`{"key":"0","address":"https://127.0.0.1:1"}`)}}}); err != nil {
		s.h.t.Fatal(err)
	}
	does(204, "DELETE", "/pair/members/b?dry_run=true", "", "")
	does(204, "DELETE", "/pair/members/b", "", "node.remove")
	does(200, "POST", "/pair/promote?dry_run=true", `{}`, "")
	does(200, "POST", "/pair/promote", `{"alone":true}`, "") // it leads
}

// last returns how many audit records a store had.
func last(t testing.TB, p *pair.Store) store.Sequence {
	t.Helper()
	page, err := p.Page(t.Context(), store.StreamAudit, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(page) == 0 {
		return 0
	}
	return page[0].Sequence
}
