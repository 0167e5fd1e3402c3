package exchange_test

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"unsafe"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

func TestFiltersActInOrderAndResponsesRunBackwards(t *testing.T) {
	var trace []string
	step := func(name string, answer *exchange.Answer) exchange.Filter {
		return exchange.Filter{Name: name,
			Request:  func(*exchange.Exchange) *exchange.Answer { trace = append(trace, name); return answer },
			Response: func(*exchange.Exchange) { trace = append(trace, "/"+name) }}
	}
	source := &exchangetest.Source{Status: 200, Body: "hello"}
	f := exchangetest.Run(t, exchangetest.New(t), source, step("a", nil), exchange.Filter{}, step("b", nil))
	if got := strings.Join(trace, " "); got != "a b /b /a" || f.Status != 200 || f.Body != "hello" {
		t.Errorf("got %s, %d %q", got, f.Status, f.Body)
	}
	trace = nil
	f = exchangetest.Run(t, exchangetest.New(t), source, step("a", nil), step("b", exchange.Fail(exchange.RateLimited, "")), step("c", nil))
	if got := strings.Join(trace, " "); got != "a b /b /a" || f.Status != 429 || source.Asked != 1 {
		t.Errorf("got %s, %d, source asked %d times", got, f.Status, source.Asked)
	}
}

func TestAnswerTakesTheFormTheClientAccepts(t *testing.T) {
	for accept, want := range map[string]string{
		"":                                      "text/plain; charset=utf-8",
		"*/*":                                   "text/plain; charset=utf-8",
		"text/html,application/xhtml+xml,*/*":   "text/html; charset=utf-8",
		"application/json":                      "application/problem+json",
		"text/html;q=0, application/json;q=0.5": "application/problem+json",
	} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/x", "Accept: "+accept))
		deny := exchange.Filter{Request: func(*exchange.Exchange) *exchange.Answer {
			return exchange.Fail(exchange.UpstreamRefused, "connect to 10.1.2.3:80: refused")
		}}
		f := exchangetest.Run(t, ex, nil, deny)
		if got := f.Field("Content-Type"); got != want {
			t.Errorf("%q: got %s, want %s", accept, got, want)
		}
		if strings.Contains(f.Body, "10.1.2.3") || !strings.Contains(f.Body, ex.ID()) || !strings.Contains(f.Body, "upstream_refused") {
			t.Errorf("%q: body %s", accept, f.Body)
		}
		if f.Field("Cache-Control") != "no-store" || !strings.Contains(f.Field("Proxy-Status"), "upstream_refused") || f.Field("X-Request-Id") != ex.ID() {
			t.Errorf("%q: fields %q", accept, f.Fields)
		}
	}
}

func TestPanicIsAnsweredWith500(t *testing.T) {
	told := 0
	for _, sent := range []bool{false, true} {
		ex := exchangetest.New(t)
		p := &exchange.Pipeline{Log: slog.New(slog.DiscardHandler), Done: []func(*exchange.Exchange){func(ex *exchange.Exchange) {
			told++
			if ex.Reason != exchange.Internal || ex.Cause != "broken" {
				t.Errorf("told %v %q", ex.Reason, ex.Cause)
			}
		}}}
		p.Filters = []exchange.Filter{{Request: func(ex *exchange.Exchange) *exchange.Answer {
			ex.Response.HeadSent = sent
			panic("broken")
		}}}
		p.Serve(ex)
		f := ex.Front.(*exchangetest.Front)
		if sent && !f.Aborted || !sent && f.Status != 500 {
			t.Errorf("head sent %v: got %+v", sent, f)
		}
	}
	if told != 2 {
		t.Errorf("told %d times", told)
	}
}

func TestClientClosedIsNotSent(t *testing.T) {
	ex := exchangetest.New(t)
	f := exchangetest.Run(t, ex, nil, exchange.Filter{Request: func(*exchange.Exchange) *exchange.Answer {
		return exchange.Fail(exchange.ClientClosed, "left")
	}})
	if !f.Aborted || f.Status != 0 || ex.Status() != 499 {
		t.Errorf("got %+v, status %d", f, ex.Status())
	}
}

func TestBrokenBodyIsTold(t *testing.T) {
	ex := exchangetest.New(t)
	source := &exchangetest.Source{Status: 200, Body: "x"}
	exchangetest.Run(t, ex, source, exchange.Filter{Response: func(ex *exchange.Exchange) {
		ex.Response.Body = brokenBody{}
	}})
	if ex.Reason != exchange.UpstreamReset || !strings.Contains(ex.Cause, "cut") {
		t.Errorf("got %v %q", ex.Reason, ex.Cause)
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) {
	return 0, &exchange.Error{Reason: exchange.UpstreamReset, Err: errors.New("cut")}
}
func (brokenBody) Ready() bool  { return true }
func (brokenBody) Close() error { return nil }

func TestRequestIDs(t *testing.T) {
	seen := map[string]bool{}
	conn := &exchange.Conn{Serial: 7}
	for range 1000 {
		var ex exchange.Exchange
		ex.Reset(conn, nil)
		id := ex.ID()
		if len(id) != 26 || seen[id] || id != ex.ID() {
			t.Fatalf("id %q", id)
		}
		seen[strings.Clone(id)] = true
	}
}

func TestTextKeepsWhatItGave(t *testing.T) {
	var text exchange.Text
	var got, want []string
	for i := range 200 {
		s := strings.Repeat(string(rune('a'+i%26)), i*7%600)
		want = append(want, s)
		got = append(got, text.Join(s[:len(s)/2], s[len(s)/2:]))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: got %.20q…, want %.20q…", i, got[i], want[i])
		}
	}
}

func TestEveryReasonIsComplete(t *testing.T) {
	words := map[string]bool{}
	for _, r := range exchange.Reasons() {
		if w := r.String(); w == "" || words[w] {
			t.Errorf("reason %d: word %q", r, w)
		}
		words[r.String()] = true
		if s := r.Status(); s != 0 && s != exchange.StatusClientClosed && (r.Title() == "" || r.Hint() == "" || r.ProxyError() == "") {
			t.Errorf("%s: nothing to tell a person", r)
		}
	}
}

// TestFieldsThatAreLoggedOutliveTheResponse holds that Done sees the named fields of a
// response after its memory is gone, and no others, and that naming none costs nothing.
func TestFieldsThatAreLoggedOutliveTheResponse(t *testing.T) {
	memory := []byte("X-Seen: value")
	value := unsafe.String(&memory[8], 5)
	var seen string
	p := &exchange.Pipeline{Log: slog.New(slog.DiscardHandler), Done: []func(*exchange.Exchange){func(ex *exchange.Exchange) {
		seen = ""
		for _, f := range ex.Response.Header.All() {
			seen += f.Name + ": " + f.Value + "\n"
		}
	}}}
	p.Filters = []exchange.Filter{{Response: func(ex *exchange.Exchange) {
		ex.Response.Header.AddField("X-Seen", value)
		ex.Response.Header.AddField("X-Other", "other")
		ex.Response.Body = dying{memory}
	}}}
	for _, logged := range [][]string{nil, {"x-seen", "X-None"}} {
		copy(memory, "X-Seen: value")
		p.Source, p.Logged = &exchangetest.Source{Status: 200}, logged
		ex := exchangetest.New(t)
		p.Serve(ex)
		want := ""
		if logged != nil {
			want = "x-seen: value\n"
		}
		if seen != want {
			t.Errorf("logged %q: got %q, want %q", logged, seen, want)
		}
	}
}

// dying is a body whose memory is another's once it is closed.
type dying struct{ memory []byte }

func (dying) Read([]byte) (int, error) { return 0, io.EOF }
func (dying) Ready() bool              { return true }
func (d dying) Close() error {
	for i := range d.memory {
		d.memory[i] = '#'
	}
	return nil
}
