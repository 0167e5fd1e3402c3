package exchange_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
)

// answering is a source that answers as a function says.
type answering func(*exchange.Exchange) *exchange.Answer

func (a answering) Respond(ex *exchange.Exchange) *exchange.Answer { return a(ex) }
func (answering) Describe() string                                 { return "test" }

func TestSubrequestAsks(t *testing.T) {
	var e exchange.Subrequest
	for range 2 { // it is used again
		e.Start("GET", "/check", "?q=1", 5*time.Second)
		e.Request.Header.Add(header.Accept, "*/*")
		answer := e.Send(answering(func(ex *exchange.Exchange) *exchange.Answer {
			rq := &ex.Request
			if rq.Method != "GET" || rq.Target != "/check" || rq.Query != "?q=1" || rq.Body != nil || rq.Length != 0 || rq.Header.Len() != 1 {
				t.Errorf("asked %+v", rq)
			}
			if ex.Limits.RequestTimeout != 5*time.Second || ex.Limits.ConnectTimeout != 5*time.Second || ex.Limits.BodyIdle != 5*time.Second {
				t.Errorf("limits %+v", ex.Limits)
			}
			if ex.Front.Gone() || ex.Place == nil || ex.Times.Start == 0 || !ex.ClientIP.IsValid() || ex.ID() == "" {
				t.Errorf("the exchange lacks something: %+v", ex)
			}
			return (&exchangetest.Source{Status: 204, Fields: []string{"X-A: b"}}).Respond(ex)
		}))
		if v, _ := e.Response.Header.Lookup("X-A"); answer != nil || e.Response.Status != 204 || v != "b" {
			t.Errorf("answer %v, status %d, field %q", answer, e.Response.Status, v)
		}
		e.Close()
		e.Close()
		if e.Response.Header.Len() != 0 {
			t.Error("the head outlives Close")
		}
	}
}

func TestSubrequestTellsThatItIsNotWanted(t *testing.T) {
	var e exchange.Subrequest
	left := false
	e.Start("GET", "/", "", 0)
	e.WhileWanted(func() bool { return left })
	if e.Front.Gone() {
		t.Error("gone before")
	}
	if left = true; !e.Front.Gone() {
		t.Error("not gone after")
	}
	if e.Start("GET", "/", "", 0); e.Front.Gone() {
		t.Error("the next subrequest is not wanted either")
	}
}

// slow gives a byte a time and never ends.
type slow struct{ step func() }

func (s slow) Read(p []byte) (int, error) {
	s.step()
	p[0] = 'x'
	return 1, nil
}
func (slow) Ready() bool  { return false }
func (slow) Close() error { return nil }

func TestSubrequestReadsBoundedBodies(t *testing.T) {
	whole := func(pieces ...string) exchange.Body { return exchangetest.Body(pieces...) }
	for _, c := range []struct {
		name  string
		body  exchange.Body
		text  string
		limit int
		want  string
		err   error
	}{
		{"none", nil, "", 10, "", nil},
		{"short", whole("abc", "def"), "", 10, "abcdef", nil},
		{"just as long", whole("abc", "def"), "", 6, "abcdef", nil},
		{"longer", whole("abc", "defg"), "", 6, "abcdef", exchange.ErrTooLong},
		{"much longer", whole(strings.Repeat("x", 1<<20)), "", 6, "xxxxxx", exchange.ErrTooLong},
		{"text", nil, "abcdef", 6, "abcdef", nil},
		{"longer text", nil, "abcdefg", 6, "abcdef", exchange.ErrTooLong},
		{"endless", slow{func() {}}, "", 100, strings.Repeat("x", 100), exchange.ErrTooLong},
	} {
		var e exchange.Subrequest
		e.Start("GET", "/", "", 0)
		e.Response.Body, e.Response.Text = c.body, []byte(c.text)
		got, err := e.AppendBody([]byte("> "), c.limit)
		if string(got) != "> "+c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
		e.Close()
	}
}

// A body that comes a byte at a time does not hold its reader for ever.
func TestSubrequestGivesUpOnASlowBody(t *testing.T) {
	var e exchange.Subrequest
	e.Start("GET", "/", "", time.Millisecond)
	e.Response.Body = slow{func() {
		for begin := exchange.Now(); exchange.Now() < begin+100_000; {
		}
	}}
	_, err := e.AppendBody(nil, 1<<20)
	var known *exchange.Error
	if !errors.As(err, &known) || known.Reason != exchange.UpstreamTimeout {
		t.Errorf("%v, want upstream_timeout", err)
	}
	e.Start("GET", "/", "", time.Minute)
	e.Response.Body = exchangetest.Body("done")
	if b, err := e.AppendBody(nil, 10); string(b) != "done" || err != nil && err != io.EOF {
		t.Errorf("%q, %v", b, err)
	}
}
