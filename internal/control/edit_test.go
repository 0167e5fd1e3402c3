package control

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/store/history"
	"headgate/internal/testhouse"
)

// replaceWith returns an edit that makes the documents of a house say something else.
func replaceWith(cause Cause, text string) Edit {
	return Edit{Cause: cause, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		docs.List[0].Data = []byte(text)
		return docs, nil
	}}
}

func (h *house) text() string {
	h.t.Helper()
	data, err := os.ReadFile(h.file)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

func TestAnEditIsAppliedAndWritten(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	_, tag, err := h.c.Documents()
	if err != nil {
		t.Fatal(err)
	}
	next := document(202, "a "+at[0])
	edit := replaceWith(Cause{Who: "anna", Why: "a test", Via: ViaAPI}, next)
	edit.IfMatch = tag
	e, err := h.c.Change(edit)
	if err != nil || e.Verb != Applied || e.Revision != "00000002" || len(e.Difference.Objects) != 1 {
		t.Fatalf("got %+v and %v", e, err)
	}
	expectStatus(t, at[0], 202)
	if h.text() != next {
		t.Errorf("the document says %s", h.text())
	}
	r, _ := h.c.history.Head()
	if r.Who != "anna" || r.Why != "a test" || r.Via != "api" || r.State != history.Confirmed {
		t.Errorf("the revision is %+v", r)
	}
	// The watch does not apply our own write again.
	h.c.changed()
	if n := h.log.count("configuration applied"); n != 2 {
		t.Errorf("%d changes were applied, want 2", n)
	}

	// An edit that was made of something else changes nothing.
	_, err = h.c.Change(edit)
	if stale := (*Stale)(nil); !errors.As(err, &stale) || stale.Have == tag || stale.Have == "" {
		t.Errorf("got %v, want that the configuration was changed meanwhile", err)
	}
	// Nor does one that is not valid, or that is only tried.
	if _, err := h.c.Change(replaceWith(Cause{Via: ViaAPI}, "version: 2\n")); err == nil {
		t.Error("a broken document was applied")
	}
	dry := replaceWith(Cause{Via: ViaAPI}, document(203, "a "+at[0]))
	dry.DryRun = true
	if e, err := h.c.Change(dry); err != nil || len(e.Difference.Objects) != 1 {
		t.Errorf("a dry run: got %+v and %v", e, err)
	}
	if h.text() != next {
		t.Errorf("the document says %s", h.text())
	}
	expectStatus(t, at[0], 202)
}

// Several documents are changed, made and removed in one change, and a person who edits
// one at the same moment loses nothing.
func TestAnEditOfAFolder(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	dir := t.TempDir()
	put := func(name, text string) { write(t, filepath.Join(dir, name), text) }
	ports := "version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nports: {a: {address: \"" + at[0] + "\", protocol: http}}\n"
	put("10-ports.yaml", ports)
	put("20-shop.yaml", "version: 1\nproxies: {all: {routes: [{fixed_response: {status: 201}}]}}\n")
	put("notes.txt", "not a document")
	put(".hidden.yaml", "not a document")
	h := prepareAt(t, dir, t.TempDir()).run()
	expectStatus(t, at[0], 201)

	_, err := h.c.Change(Edit{Cause: Cause{Via: ViaAPI}, Do: func(docs config.Documents, now *config.Config) (config.Documents, error) {
		if len(docs.List) != 2 || now.Proxies["all"] == nil {
			t.Errorf("got %d documents and %+v", len(docs.List), now.Proxies)
		}
		docs.List = []config.Document{
			{Name: docs.List[0].Name, Data: []byte(strings.Replace(ports, at[0], at[1], 1))},
			{Name: filepath.Join(dir, "30-other.yaml"), Data: []byte("version: 1\nproxies: {all: {routes: [{fixed_response: {status: 202}}]}}\n")},
		}
		return docs, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	expectStatus(t, at[1], 202)
	if _, err := os.Stat(filepath.Join(dir, "20-shop.yaml")); !os.IsNotExist(err) {
		t.Errorf("the document that was taken out is there: %v", err)
	}

	mine := "version: 1\nproxies: {all: {routes: [{fixed_response: {status: 204}}]}} # by hand\n"
	_, err = h.c.Change(Edit{Cause: Cause{Via: ViaAPI}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		put("30-other.yaml", mine) // between the read and the save
		docs.List[1].Data = []byte(strings.Replace(string(docs.List[1].Data), "202", "203", 1))
		return docs, nil
	}})
	if stale := (*Stale)(nil); !errors.As(err, &stale) {
		t.Errorf("got %v, want that the document was changed meanwhile", err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "30-other.yaml")); string(got) != mine {
		t.Errorf("the hand edit is lost: %s", got)
	}
	testhouse.Eventually(t, "the hand edit is applied", serves(at[1], 204))
}
