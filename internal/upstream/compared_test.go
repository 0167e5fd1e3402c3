package upstream

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/server/mirror"
)

// respondWith responds with a head and a body.
func respondWith(status, body string) func(net.Conn, *http.Request) bool {
	return func(c net.Conn, _ *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 "+status+"\r\nContent-Type: text/plain\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		return true
	}
}

// compared waits until a report has compared some responses.
func compared(t *testing.T, r *mirror.Report, n int64) mirror.State {
	t.Helper()
	for begun := time.Now(); ; <-time.After(time.Millisecond) {
		if s := r.State(); s.Compared+s.Skipped >= n {
			return s
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("got %+v, want %d compared", r.State(), n)
		}
	}
}

func TestMirroredResponsesAreCompared(t *testing.T) {
	long := strings.Repeat("0123456789", 100_000)
	for name, test := range map[string]struct {
		main, second func(net.Conn, *http.Request) bool
		option       exchangetest.Option
		want         mirror.Kind
	}{
		"short bodies":        {respondWith("200 OK", "a"), respondWith("200 OK", "a"), nil, ""},
		"long bodies":         {respondWith("200 OK", long), respondWith("200 OK", long), nil, ""},
		"another long body":   {respondWith("200 OK", long), respondWith("200 OK", long[1:]+"0"), nil, mirror.Body},
		"another short body":  {respondWith("200 OK", "a"), respondWith("200 OK", "b"), nil, mirror.Body},
		"no body":             {respondWith("204 No Content", ""), respondWith("204 No Content", ""), nil, ""},
		"a request body":      {respondWith("200 OK", "a"), respondWith("200 OK", "a"), exchangetest.Content("some text"), ""},
		"status":              {respondWith("200 OK", "a"), respondWith("404 Not Found", "a"), nil, mirror.Status},
		"a mirror that fails": {respondWith("200 OK", "a"), func(net.Conn, *http.Request) bool { return false }, nil, mirror.Status},
	} {
		t.Run(name, func(t *testing.T) {
			c := copies
			c.Compare = &mirror.Report{}
			m := newMirrored(t, newOdd(t, test.main), newOdd(t, test.second), c)
			ex := exchangetest.New(t)
			if test.option != nil {
				ex = exchangetest.New(t, exchangetest.Head("POST", "/x"), test.option)
			}
			exchangetest.Run(t, ex, m)
			s := compared(t, c.Compare, 1)
			got := map[mirror.Kind]int64{"": s.Same, mirror.Status: s.Status, mirror.Body: s.Body, mirror.Header: s.Header}
			if got[test.want] != 1 || s.Incomplete != 0 {
				t.Errorf("got %+v, want %q", s, test.want)
			}
		})
	}
}

func TestCopiesThatAreNotSentAreNotCompared(t *testing.T) {
	c := copies
	c.Compare = &mirror.Report{}
	m := newMirrored(t, newOdd(t, respondText(fine)), newOdd(t, respondText(fine)), c)
	for range c.MaxRequests * 2 { // each gives its place back
		exchangetest.Run(t, exchangetest.New(t, exchangetest.Head("POST", "/"), exchangetest.Chunks("more than ", "sixteen bytes")), m)
		equal(t, "copy", m.next(t), CopyTooLong)
	}
	exchangetest.Run(t, exchangetest.New(t), m)
	if s := compared(t, c.Compare, 1); s.Compared != 1 || s.Skipped != 0 {
		t.Errorf("got %+v, want 1 compared", s)
	}
}
