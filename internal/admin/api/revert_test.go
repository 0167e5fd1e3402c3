package api

import (
	"strings"
	"sync"
	"testing"

	"headgate/internal/store"
)

// TestEditorsTakeNothingBackThatIsForAdmins reverts a change of who may sign in, and decides
// about a restore, as an editor.
func TestEditorsTakeNothingBackThatIsForAdmins(t *testing.T) {
	h := start(t)
	h.does("PATCH", "/settings/admin?confirm_within=5m", `{"hosts":["gate.example.com"]}`, 200, "", "as: admin", always)
	before := h.text()
	h.does("POST", "/revert?dry_run=true", "{}", 403, "forbidden", "as: editor")
	h.does("POST", "/revert", "{}", 403, "forbidden", "as: editor")
	h.does("POST", "/confirm?dry_run=true", "{}", 403, "forbidden", "as: editor")
	h.does("POST", "/confirm", "{}", 403, "forbidden", "as: editor")
	if h.text() != before || h.c.Pending() == nil {
		t.Errorf("taken back all the same: %s", h.text())
	}
	h.does("POST", "/revert", "{}", 200, "", "as: admin")
	if h.text() == before {
		t.Error("an admin has not taken it back")
	}

	// What reaches for something of the machine is for admins, too.
	h.does("PATCH", "/proxies/main?confirm_within=5m", `{"routes":[{"servers":[{"url":"unix:/run/app.sock"}]}]}`, 200, "", "as: admin", always)
	h.does("POST", "/confirm", "{}", 403, "host_field", "as: editor")
	h.does("POST", "/revert", "{}", 200, "", "as: admin")

	var archive strings.Builder
	if err := h.c.Backup(t.Context(), &archive, ""); err != nil {
		t.Fatal(err)
	}
	h.does("POST", "/users", `{"name":"carl","role":"admin","password":"`+good+`"}`, 201, "", "as: admin")
	upload := []string{"as: admin", always, "Content-Type: application/octet-stream"}
	h.does("POST", "/restore?confirm_within=5m", archive.String(), 200, "", upload...)
	h.does("GET", "/users/carl", "", 404, "not_found", "as: admin")
	for _, path := range []string{"/revert", "/confirm", "/revert?dry_run=true", "/confirm?dry_run=true"} {
		h.does("POST", path, "{}", 403, "forbidden", "as: editor")
	}
	h.does("POST", "/revert", "{}", 200, "", "as: admin")
	h.does("GET", "/users/carl", "", 200, "", "as: admin")
	h.does("POST", "/restore?confirm_within=5m", archive.String(), 200, "", upload...)
	h.does("POST", "/confirm", "{}", 200, "", "as: admin")
	h.does("GET", "/users/carl", "", 404, "not_found", "as: admin")
	h.does("PATCH", "/proxies/main?confirm_within=5m", `{"description":"x"}`, 200, "", "as: editor", always)
	h.does("POST", "/confirm", "{}", 200, "", "as: editor") // of a change that is none
}

// TestARestoredCertificateHasItsOrder restores a certificate that is not there any more: it
// comes with the record of its order, and no other record comes.
func TestARestoredCertificateHasItsOrder(t *testing.T) {
	h := start(t)
	state := h.c.Store()
	entry := func(key, text string) store.Entry { return store.Entry{Key: key, Value: []byte(text)} }
	gone, kept, failed := store.PrefixCertificate+"gone", store.PrefixCertificate+"kept", store.PrefixOrder+"failed"
	orderGone, orderKept := store.PrefixOrder+"gone", store.PrefixOrder+"kept"
	if _, err := state.Commit(t.Context(), store.Change{Put: []store.Entry{
		entry(gone, "certificate"), entry(orderGone, "order"), entry(kept, "certificate"), entry(orderKept, "order"), entry(failed, "order"),
	}}); err != nil {
		t.Fatal(err)
	}
	var archive strings.Builder
	if err := h.c.Backup(t.Context(), &archive, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Commit(t.Context(), store.Change{Delete: []string{gone, orderGone, failed}, Put: []store.Entry{entry(kept, "newer"), entry(orderKept, "newer")}}); err != nil {
		t.Fatal(err)
	}
	h.does("POST", "/restore", archive.String(), 200, "", "as: admin", always, "Content-Type: application/octet-stream")
	for key, want := range map[string]string{gone: "certificate", orderGone: "order", kept: "newer", orderKept: "newer", failed: ""} {
		if e, _ := state.Get(t.Context(), key); string(e.Value) != want {
			t.Errorf("%s is %q, want %q", key, e.Value, want)
		}
	}
}

// TestRevisionsAreComparedOneAfterTheOther holds that those who compare wait for each other.
func TestRevisionsAreComparedOneAfterTheOther(t *testing.T) {
	h := start(t)
	h.api.comparing <- struct{}{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { h.does("GET", "/revisions/1/diff/current", "", 200, "", "as: viewer") })
	}
	<-h.api.comparing
	all.Wait()
	if len(h.api.comparing) != 0 {
		t.Error("a place stays taken")
	}
}
