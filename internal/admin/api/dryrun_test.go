package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"headgate/internal/store"
)

// TestEveryWriteCanBeTriedOrSaysWhyNot walks the table: whatever is no GET takes dry_run,
// or refuses it with the reason. What the dry runs do is held by the scenes of
// TestEveryRowAnswersEveryStatusItDocuments.
func TestEveryWriteCanBeTriedOrSaysWhyNot(t *testing.T) {
	h := start(t)
	refused := 0
	for _, r := range h.api.rows {
		what := r.method + " " + r.path
		if get := r.method == http.MethodGet; get == (r.dry || r.noDry != "") || r.dry && r.noDry != "" {
			t.Errorf("%s: dry_run is taken: %v, refused: %q", what, r.dry, r.noDry)
		}
		if r.noDry == "" {
			continue
		}
		refused++
		rs, out := h.call(r.method, r.at()+"?dry_run=true", "{}", "as: admin", always)
		h.expect(what, rs, out, 400, "invalid")
		if out["parameter"] != "dry_run" || out["detail"] != r.noDry || out["remedy"] == nil {
			t.Errorf("%s says %v", what, out)
		}
	}
	if refused == 0 || refused > 20 {
		t.Errorf("%d rows cannot be tried out", refused)
	}
}

// neverTold are rows whose success a dry run cannot promise, with why.
var neverTold = map[string]string{
	"POST /acme/{name}/rollover": "the authority is asked by the rollover only",
	"POST /store/adopt":          "no store of this package's tests was set back",
	"POST /store/push":           "no store of this package's tests was set back",
}

// unaudited are rows that change nothing, or nothing that is kept.
var unaudited = []string{
	"POST /explain", "POST /explain/stream", "POST /upgrade/check", "POST /config/plan", "POST /config/validate", "POST /orders/{name}/preflight", "POST /import", "POST /session/oidc", "POST /session/passkey", "POST /session/passkeys",
	"POST /setup", // of a store of its own
}

// changes reports whether a row does something that the audit has to tell.
func (r *row) changes() bool {
	return r.method != http.MethodGet && !slices.Contains(unaudited, r.method+" "+r.path)
}

// rowOf returns the row of a request, nil if there is none.
func (s *scene) rowOf(method, path string) *row {
	_, pattern := s.h.api.mux.Handler(httptest.NewRequest(method, Prefix+path, nil))
	for _, r := range s.h.api.rows {
		if r.method == method && Prefix+r.path == pattern {
			return r
		}
	}
	return nil
}

// tried is what a dry run has said.
type tried struct {
	t      testing.TB
	what   string
	status int
	code   string
}

// tries sends a write with dry_run, and holds that nothing is another than before. It
// returns nil for what has no dry run.
func (s *scene) tries(method, path, body string, fields ...string) *tried {
	s.h.t.Helper()
	r := s.rowOf(method, path)
	if r == nil || !r.dry || strings.Contains(path, "dry_run") {
		return nil
	}
	at := path + "?dry_run=true"
	if strings.Contains(path, "?") {
		at = path + "&dry_run=true"
	}
	before := s.h.keeps()
	w, out := s.call(method, at, body, fields...)
	for key, value := range s.h.keeps() {
		if was, there := before[key]; !there || was != value {
			s.h.t.Errorf("%s %s changes %s", method, at, key)
		}
		delete(before, key)
	}
	for key := range before {
		s.h.t.Errorf("%s %s removes %s", method, at, key)
	}
	if neverTold[r.method+" "+r.path] != "" {
		return nil
	}
	return &tried{s.h.t, method + " " + at + " " + body, w.Code, fmt.Sprint(out["code"])}
}

// matches holds that the dry run has said what was answered then.
func (d *tried) matches(status int, out map[string]any) {
	if d == nil {
		return
	}
	d.t.Helper()
	if status == http.StatusCreated || status == http.StatusAccepted {
		status = http.StatusOK
	}
	if code := fmt.Sprint(out["code"]); d.status != status || status >= 300 && d.code != code {
		d.t.Errorf("%.300s said %d %s, and it was %d %s", d.what, d.status, d.code, status, code)
	}
}

// keeps returns all that a dry run must leave as it is, as texts by their names. What is
// told of use, which goes on by itself, is left out.
func (h *house) keeps() map[string]string {
	h.t.Helper()
	all := map[string]string{"the document": h.text(), "servers": fmt.Sprint(h.c.HeldServers()), "pending": fmt.Sprint(h.c.Pending())}
	for _, prefix := range []string{store.PrefixRevision, store.PrefixCertificate, store.PrefixAccount, store.PrefixUser, store.PrefixToken, store.PrefixSession, store.PrefixHeld, store.PrefixSetup} {
		entries, _, err := h.c.Store().Snapshot(context.Background(), prefix)
		if err != nil {
			return map[string]string{"the store": "closed"}
		}
		for _, e := range entries {
			all[e.Key] = string(e.Value)
			if prefix == store.PrefixToken || prefix == store.PrefixSession {
				all[e.Key] = "is there"
			}
		}
	}
	all["audit"] = fmt.Sprint(h.audited())
	return all
}

// audited returns the last place in the audit, -1 where it cannot be read.
func (h *house) audited() int64 {
	records, err := h.c.Store().Page(context.Background(), store.StreamAudit, 0, 1)
	switch {
	case err != nil:
		return -1
	case len(records) == 0:
		return 0
	}
	return int64(records[0].Sequence)
}
