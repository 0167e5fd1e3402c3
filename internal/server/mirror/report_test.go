package mirror

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/proto/header"
)

// response is one side of a test.
type response struct {
	status int
	fields string // name: value, separated by newlines
	body   string
	cut    bool
}

// receive receives a response with the body in parts.
func (a *Answer) receive(r response, took time.Duration) {
	if r.status == 0 {
		a.End(true)
		return
	}
	var list header.List
	for _, line := range strings.Split(r.fields, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			list.AddField(name, value)
		}
	}
	a.Head(r.status, &list, took)
	for body := []byte(r.body); len(body) > 0; {
		n := 1 + rand.IntN(len(body))
		a.Write(body[:n])
		body = body[n:]
	}
	a.End(!r.cut)
	a.End(false) // Close
}

// compare compares two responses in a report of its own.
func compare(servers, mirrored response) State {
	var r Report
	p := r.Start("GET", "/a", 1)
	p.Mirror.receive(mirrored, 40*time.Millisecond)
	p.Servers.receive(servers, 10*time.Millisecond)
	return r.State()
}

func TestResponsesAreComparedByStatusBodyAndHeader(t *testing.T) {
	plain := response{200, "Content-Type: text/html\nDate: today\nSet-Cookie: sid=1; Path=/", "hello", false}
	change := func(f func(*response)) response { r := plain; f(&r); return r }
	for name, test := range map[string]struct {
		servers, mirror response
		want            Kind
		field, value    string
		incomplete      int64
	}{
		"the same":             {plain, plain, "", "", "", 0},
		"volatile fields":      {plain, change(func(r *response) { r.fields = "date: now\ncontent-type: text/html\nSet-Cookie: sid=2\nAge: 1" }), "", "", "", 0},
		"weak ETags":           {change(func(r *response) { r.fields += "\nEtag: W/\"a\"" }), change(func(r *response) { r.fields += "\nEtag: W/\"b\"" }), "", "", "", 0},
		"strong ETags":         {change(func(r *response) { r.fields += "\nEtag: \"a\"" }), change(func(r *response) { r.fields += "\nEtag: \"b\"" }), Header, "etag", `"b"`, 0},
		"status":               {plain, change(func(r *response) { r.status, r.body = 500, "oops" }), Status, "", "", 0},
		"no response":          {plain, response{}, Status, "", "", 0},
		"no response of both":  {response{}, response{}, "", "", "", 0},
		"body":                 {plain, change(func(r *response) { r.body = "hellO" }), Body, "", "", 0},
		"longer":               {plain, change(func(r *response) { r.body = "hello!" }), Body, "", "", 0},
		"cut off":              {plain, change(func(r *response) { r.body, r.cut = "hel", true }), "", "", "", 1},
		"missing field":        {plain, change(func(r *response) { r.fields = "Set-Cookie: sid=1" }), Header, "content-type", "", 0},
		"another cookie":       {plain, change(func(r *response) { r.fields += "\nSet-Cookie: theme=dark" }), Header, "set-cookie", "sid, theme", 0},
		"a secret":             {plain, change(func(r *response) { r.fields += "\nX-Auth-Token: hunter2" }), Header, "x-auth-token", "…", 0},
		"a redirect":           {plain, change(func(r *response) { r.fields += "\nLocation: /in?token=hunter2" }), Header, "location", "/in?…", 0},
		"both are cut at 16 M": {change(func(r *response) { r.body = strings.Repeat("x", MaxBody) + "a" }), change(func(r *response) { r.body, r.cut = strings.Repeat("x", MaxBody), true }), "", "", "", 0},
		"one is cut at 16 M":   {change(func(r *response) { r.body = strings.Repeat("x", MaxBody-1) }), change(func(r *response) { r.body, r.cut = strings.Repeat("x", MaxBody), true }), Body, "", "", 0},
	} {
		s := compare(test.servers, test.mirror)
		got := map[Kind]int64{Status: s.Status, Body: s.Body, Header: s.Header, "": s.Same + s.Incomplete}
		if s.Compared != 1 || got[test.want] != 1 || s.Incomplete != test.incomplete {
			t.Errorf("%s: got %+v, want kind %q", name, s, test.want)
		}
		if test.want == "" {
			continue
		}
		if len(s.Samples) != 1 || s.Samples[0].Kind != test.want || s.Samples[0].Field != test.field || s.Samples[0].Mirror.Value != test.value {
			t.Errorf("%s: got samples %+v, want field %q with %q", name, s.Samples, test.field, test.value)
		}
		if text := fmt.Sprint(s); strings.Contains(text, "hunter2") {
			t.Errorf("%s: a secret is shown: %s", name, text)
		}
	}
}

func TestTimesAndFailuresAreCountedOfEachSide(t *testing.T) {
	s := compare(response{status: 200}, response{status: 200})
	if s.Servers.P50 < 9 || s.Servers.P50 > 12 || s.Mirror.P95 < 36 || s.Mirror.P95 > 46 {
		t.Errorf("got %+v and %+v, want about 10 and 40 ms", s.Servers, s.Mirror)
	}
	if s = compare(response{status: 200}, response{}); s.Mirror.Failed != 1 || s.Mirror.P50 != 0 || s.Servers.Failed != 0 {
		t.Errorf("got %+v, want one failure of the mirror", s)
	}
}

func TestAReportHasLimits(t *testing.T) {
	var r Report
	for i := range 1000 {
		p := r.Start("GET", "/"+strings.Repeat("x", 1000)+fmt.Sprint(i), 1)
		p.Servers.receive(response{200, fmt.Sprintf("X-%d: a", i), "", false}, 0)
		p.Mirror.receive(response{200, "", fmt.Sprint(i), false}, 0)
		p = r.Start("GET", fmt.Sprint("/", i), 1)
		p.Servers.receive(response{200, strings.Repeat("X-Long: "+strings.Repeat("y", 1000)+"\n", 200), "", false}, 0)
		if n := len(p.Servers.fields); n > maxHead/1000 {
			t.Fatalf("%d fields are kept", n)
		}
		p.Mirror.receive(response{status: 404}, 0)
	}
	s := r.State()
	if len(s.Samples) != maxSamples || len(s.Headers) != maxNames || s.Compared != 2000 || s.Samples[0].Path != "/999" {
		t.Errorf("got %d samples, %d headers, %d compared, newest %s", len(s.Samples), len(s.Headers), s.Compared, s.Samples[0].Path)
	}
	for _, one := range s.Samples {
		if len(one.Path) > maxPath || one.Requests < 1 {
			t.Fatalf("sample %+v", one)
		}
	}
	a, b := r.Start("GET", "/", 1), r.Start("GET", "/", 1)
	if a == nil || b != nil || r.State().Skipped != 1 {
		t.Errorf("second of one: %v, skipped %d", b, r.State().Skipped)
	}
	a.Drop()
	a.Servers.End(true)
	if s := r.State(); s.Compared != 2000 || r.running.Load() != 0 {
		t.Errorf("a dropped one is counted: %d; %d in progress", s.Compared, r.running.Load())
	}
}

func TestSidesEndConcurrently(t *testing.T) {
	var r Report
	var all sync.WaitGroup
	body := string(bytes.Repeat([]byte("0123456789"), 1000))
	for range 200 {
		p := r.Start("GET", "/", 1000)
		for _, a := range []*Answer{&p.Servers, &p.Mirror} {
			all.Go(func() { a.receive(response{200, "X: y", body, false}, time.Millisecond) })
		}
	}
	all.Wait()
	if s := r.State(); s.Compared != 200 || s.Same != 200 || r.running.Load() != 0 {
		t.Errorf("got %+v, %d in progress", s, r.running.Load())
	}
}
