package control

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

func TestABrokenDocumentAtTheStartLeavesTheNewestConfirmedRevision(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	h.finish()
	write(t, h.file, "version: 1\nports: {a: {addr")
	h = h.again()
	expectStatus(t, at[0], 201)
	s := h.c.Status()
	if s.State != "degraded" || s.Refused == nil || s.Revision != "00000001" || len(s.Sources) != 1 || s.Sources[0].State != "error" {
		t.Errorf("the status is %+v", s)
	}
	h.c.changed() // as the watch's first look
	if log := h.log.String(); !strings.Contains(log, "DEGRADED") || strings.Count(log, "configuration refused") != 1 {
		t.Errorf("the log does not tell once:\n%s", log)
	}
	if page := metricsPage(h); !strings.Contains(page, "headgate_config_last_apply_successful 0") {
		t.Errorf("the page says %s", lines(page, "headgate_config"))
	}
	if !strings.Contains(h.text(), "{addr") {
		t.Error("the document was written")
	}
	write(t, h.file, document(202, "a "+at[0]))
	testhouse.Eventually(t, "the document is applied when it is right", serves(at[0], 202))
	testhouse.Eventually(t, "the status tells so", func() bool {
		s := h.c.Status()
		return s.State == "serving" && s.Refused == nil
	})
}

// An edit that is refused does not make the documents those that are served.
func TestTheETagOfADegradedHeadgateIsThatOfNothing(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	h.finish()
	broken := "version: 1\nports: {a: {addr"
	write(t, h.file, broken)
	h = h.again()
	if _, err := h.c.Change(replaceWith(Cause{Via: ViaAPI}, "version: 2\n")); err == nil {
		t.Error("the edit was taken")
	}
	if tag := h.c.ETag(); tag != "" {
		t.Errorf("the ETag is %s, want none", tag)
	}
	// What was refused at the start is refused again when somebody brings it back.
	if _, err := h.c.Change(replaceWith(Cause{Via: ViaAPI}, document(202, "a "+at[0]))); err != nil {
		t.Fatal(err)
	}
	write(t, h.file, broken)
	testhouse.Eventually(t, "the file is refused", func() bool { return h.c.Status().Refused != nil })
}

// What is kept of another file is not served in the place of a wrong one.
func TestARevisionOfAnotherFileIsNotServed(t *testing.T) {
	h := start(t, document(201, "a "+testhouse.Addresses(t, 1)[0]))
	h.finish()
	for _, name := range []string{"absent.yaml", "wrong.yaml"} {
		file := filepath.Join(filepath.Dir(h.file), name)
		if name == "wrong.yaml" {
			write(t, file, "version: 2\n")
		}
		if err := prepareAt(t, file, h.state).c.Run(context.Background()); err == nil {
			t.Errorf("%s: it started", name)
		}
	}
}

func TestAStrictStartRefusesABrokenDocument(t *testing.T) {
	h := start(t, document(201, "a "+testhouse.Addresses(t, 1)[0]))
	h.finish()
	write(t, h.file, "version: 2\n")
	h = prepareAt(t, h.file, h.state)
	h.c.options.Strict = true
	if err := h.c.Run(context.Background()); err == nil {
		t.Error("it started")
	}
}
