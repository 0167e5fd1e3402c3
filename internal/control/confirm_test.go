package control

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/internal/store/history"
	"headgate/internal/testhouse"
)

// tentative makes an edit that has to be confirmed.
func (h *house) tentative(text string) {
	h.t.Helper()
	edit := replaceWith(Cause{Who: "anna", Via: ViaAPI}, text)
	edit.ConfirmWithin = time.Hour
	if _, err := h.c.Change(edit); err != nil {
		h.t.Fatal(err)
	}
}

func TestAChangeThatNobodyConfirmsIsReverted(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	before := document(201, "a "+at[0])
	h := start(t, before)
	h.tentative(document(202, "a "+at[1]))
	expectStatus(t, at[1], 202)
	if p := h.c.Status().Pending; p == nil || p.Revision != "00000002" || time.Until(p.Until) < 50*time.Minute {
		t.Fatalf("got %+v", p)
	}
	// Nobody else changes anything meanwhile.
	_, err := h.c.Change(replaceWith(Cause{Via: ViaAPI}, document(203, "a "+at[1])))
	if pending := (*ConfirmPending)(nil); !errors.As(err, &pending) || pending.Revision != 2 {
		t.Errorf("got %v, want that a change waits to be confirmed", err)
	}
	h.c.revert(2) // what the timer does
	expectStatus(t, at[0], 201)
	closed(t, at[1])
	if h.text() != before {
		t.Errorf("the document says %s", h.text())
	}
	if h.c.Status().Pending != nil {
		t.Error("it waits still")
	}
	if r, _ := h.c.history.Get(2); r.State != history.RolledBack {
		t.Errorf("revision 2 is %s", r.State)
	}
	if !strings.Contains(h.log.String(), "configuration reverted") {
		t.Error("the log does not tell")
	}
	if err := h.c.Confirm(Cause{}); !errors.Is(err, ErrNothingPending) {
		t.Errorf("got %v, want that nothing waits", err)
	}
}

// The documents of a change that cannot be taken back now are in force, and wait on.
func TestARevertThatFailsSaysNothingOfTheDocuments(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := start(t, document(201, "a "+at[0]))
	h.tentative(document(202, "a "+at[1]))
	testhouse.Eventually(t, "the address is free", func() bool {
		busy, err := net.Listen("tcp", at[0])
		if err == nil {
			t.Cleanup(func() { busy.Close() })
		}
		return err == nil
	})
	h.c.revert(2) // what the timer does
	if s := h.c.Status(); s.Refused != nil || s.Pending == nil {
		t.Errorf("refused is %+v, and %+v waits", s.Refused, s.Pending)
	}
	if page := metricsPage(h); !strings.Contains(page, "headgate_config_last_apply_successful 1") {
		t.Errorf("the page says %s", lines(page, "apply_successful"))
	}
	if !strings.Contains(h.log.String(), "level=ERROR msg=\"configuration before a change that was not confirmed cannot be brought back yet\"") {
		t.Error("the log does not tell")
	}
	if err := h.c.Confirm(Cause{}); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, at[1], 202)
}

func TestAChangeThatIsConfirmedStays(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	var verbs []Verb
	h.c.Observe(func(e *Event) { verbs = append(verbs, e.Verb) })
	h.tentative(document(202, "a "+at[0]))
	if err := h.c.Confirm(Cause{Who: "anna", Via: ViaConsole}); err != nil {
		t.Fatal(err)
	}
	h.c.revert(2) // a timer that comes too late
	expectStatus(t, at[0], 202)
	if r, _ := h.c.history.Get(2); r.State != history.Confirmed {
		t.Errorf("revision 2 is %s", r.State)
	}
	if len(verbs) != 2 || verbs[0] != Applied || verbs[1] != Confirmed {
		t.Errorf("the events are %v", verbs)
	}
	if _, err := h.c.Change(replaceWith(Cause{Via: ViaAPI}, document(203, "a "+at[0]))); err != nil {
		t.Errorf("the next change: %v", err)
	}
}

// A process that ended while a change waited begins with what was there before it.
func TestAChangeThatWaitedIsRevertedByTheNextStart(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	before := document(201, "a "+at[0])
	h := start(t, before)
	h.tentative(document(202, "a "+at[0]))
	h = h.again()
	expectStatus(t, at[0], 201)
	if h.text() != before || h.c.Status().Pending != nil {
		t.Errorf("the document says %s, and %+v waits", h.text(), h.c.Status().Pending)
	}
}

// What cannot be brought back by the start is so a little later.
func TestTheStartGoesOnTryingToRevert(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	before := document(201, "a "+at[0]) + "defaults: {error_pages: [{status: [404], file: page.html}]}\n"
	h := prepare(t, before)
	page := filepath.Join(filepath.Dir(h.file), "page.html")
	write(t, page, "gone")
	h.run()
	h.tentative(document(202, "a "+at[0]))
	h.finish()
	if err := os.Remove(page); err != nil {
		t.Fatal(err)
	}
	h = h.again()
	expectStatus(t, at[0], 202)
	if s := h.c.Status(); s.Pending == nil || s.Refused != nil || s.State != "serving" {
		t.Errorf("%+v waits, refused is %+v, and it is %s", s.Pending, s.Refused, s.State)
	}
	write(t, page, "gone")
	h.c.revert(2) // what the timer does
	expectStatus(t, at[0], 201)
	if h.text() != before || h.c.Status().Pending != nil {
		t.Errorf("the document says %s, and %+v waits", h.text(), h.c.Status().Pending)
	}
}

// Where the documents cannot be written at a start, what was before a change that was not
// confirmed is served all the same, and written later.
func TestAStartThatCannotWriteServesWhatWasBefore(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	before, after := document(201, "a "+at[0]), document(202, "a "+at[0])
	for _, confirmed := range []bool{false, true} {
		h := start(t, before)
		h.tentative(after)
		h.finish()
		h = prepareAt(t, h.file, h.state)
		intent := filepath.Join(h.state, "intent.json") // no intent can be written in its place
		if err := os.MkdirAll(filepath.Join(intent, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.run()
		expectStatus(t, at[0], 201)
		h.c.changed() // as the watch's first look
		expectStatus(t, at[0], 201)
		if s := h.c.Status(); s.Pending == nil || s.Refused == nil || s.State != "degraded" || h.c.ETag() != "" || h.text() != after {
			t.Errorf("%+v waits, refused is %+v, it is %s, the ETag is %q", s.Pending, s.Refused, s.State, h.c.ETag())
		}
		if err := os.RemoveAll(intent); err != nil {
			t.Fatal(err)
		}
		wanted, text := 201, before
		if confirmed {
			wanted, text = 202, after
			if err := h.c.Confirm(Cause{Via: ViaAPI}); err != nil {
				t.Fatal(err)
			}
		} else {
			h.c.revert(2) // what the timer does
		}
		expectStatus(t, at[0], wanted)
		if s := h.c.Status(); s.Pending != nil || s.Refused != nil || s.State != "serving" || h.c.ETag() == "" || h.text() != text {
			t.Errorf("%+v waits, refused is %+v, it is %s, the document says %s", s.Pending, s.Refused, s.State, h.text())
		}
		h.finish()
	}
}

func TestAHandEditConfirmsAChangeThatWaits(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	h.tentative(document(202, "a "+at[0]))
	write(t, h.file, document(203, "a "+at[0]))
	testhouse.Eventually(t, "the hand edit is applied", serves(at[0], 203))
	if h.c.Status().Pending != nil {
		t.Error("it waits still")
	}
	if r, _ := h.c.history.Get(2); r.State != history.Confirmed {
		t.Errorf("revision 2 is %s", r.State)
	}
	if n := h.log.count("it counts as confirmed"); n != 1 {
		t.Errorf("the log tells of it %d times, want once", n)
	}

	// Also one that was made while nothing ran.
	h.tentative(document(204, "a "+at[0]))
	h.finish()
	write(t, h.file, document(205, "a "+at[0]))
	h.again()
	expectStatus(t, at[0], 205)
}

func TestTheTimeToConfirmIsBounded(t *testing.T) {
	h := start(t, document(201, "a "+testhouse.Addresses(t, 1)[0]))
	for _, within := range []time.Duration{-time.Second, time.Second, 2 * time.Hour} {
		edit := replaceWith(Cause{}, h.text())
		edit.ConfirmWithin = within
		if _, err := h.c.Change(edit); !errors.Is(err, ErrWithin) {
			t.Errorf("%s: got %v", within, err)
		}
	}
}
