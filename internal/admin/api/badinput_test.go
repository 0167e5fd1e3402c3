package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"headgate/internal/operator"
	"headgate/internal/testhouse"
)

// TestASignInTakesNoSessionThatABrowserBrings signs in with a cookie that somebody else
// has put into the browser: one that was made up, and one of a session of their own.
func TestASignInTakesNoSessionThatABrowserBrings(t *testing.T) {
	h := start(t)
	in := func(user, cookie string) (got, secret string) {
		t.Helper()
		rs, out := h.does("POST", "/session", `{"user":"`+user+`","password":"`+good+`"}`, 201, "", "Cookie: "+Cookie+"="+cookie)
		return rs.Cookies()[0].Value, out["secret"].(string)
	}
	const made = "0123456789abcdef0123456789abcdef0123456789abcdef"
	cookie, secret := in("ann", made)
	if cookie == made {
		t.Error("the cookie of the browser was taken")
	}
	h.does("GET", "/session", "", 401, "signed_out", "Cookie: "+Cookie+"="+made, Header+": "+secret)
	theirs, theirSecret := in("bob", "")
	cookie, secret = in("ann", theirs)
	if cookie == theirs || secret == theirSecret {
		t.Error("the session of somebody else goes on as another's")
	}
	for _, s := range []string{secret, theirSecret} {
		h.does("GET", "/session", "", 401, "signed_out", "Cookie: "+Cookie+"="+theirs, Header+": "+s)
	}
	h.does("GET", "/session", "", 401, "signed_out", "Cookie: "+Cookie+"="+cookie, Header+": "+theirSecret)
	h.does("GET", "/session", "", 200, "", "Cookie: "+Cookie+"="+cookie, Header+": "+secret)
}

// TestForgedForwardedFieldsGiveNoOtherAddress uses a token that is good at one network
// only.
func TestForgedForwardedFieldsGiveNoOtherAddress(t *testing.T) {
	h := start(t)
	var err error
	_, h.tokens["admin"], err = h.ops.CreateToken(t.Context(), root, operator.Token{Name: "bound", Role: operator.Admin, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, false)
	if err != nil {
		t.Fatal(err)
	}
	o := h.api.Options
	o.Trusted = func(a netip.Addr) bool { return netip.MustParsePrefix("198.51.100.0/24").Contains(a) }
	seen := &answers{seen: map[string]map[int]bool{}}
	s := &scene{h, seen.of(New(o)), seen}
	const stranger, proxy = "From: 203.0.113.9:1", "From: 198.51.100.1:1"
	for _, c := range []struct {
		what   string
		status int
		fields []string
	}{
		{"from its network", 200, []string{"From: 10.1.2.3:1"}},
		{"a stranger", 403, []string{stranger}},
		{"a stranger who names an address", 403, []string{stranger, "X-Forwarded-For: 10.1.2.3"}},
		{"a stranger who names a proxy", 403, []string{stranger, "X-Forwarded-For: 10.1.2.3, 198.51.100.1"}},
		{"a stranger by other fields", 403, []string{stranger, "Forwarded: for=10.1.2.3", "X-Real-Ip: 10.1.2.3", "X-Client-Ip: 10.1.2.3"}},
		{"by the proxy", 200, []string{proxy, "X-Forwarded-For: 10.1.2.3"}},
		{"by two proxies", 200, []string{proxy, "X-Forwarded-For: 10.1.2.3, 198.51.100.7"}},
		{"by the proxy, and the client says more", 403, []string{proxy, "X-Forwarded-For: 10.1.2.3, 203.0.113.9"}},
		{"by the proxy, which does not say for whom", 403, []string{proxy}},
		{"by the proxy, with what is no address", 403, []string{proxy, "X-Forwarded-For: 10.1.2.3, unknown"}},
		{"by the proxy, in another field", 403, []string{proxy, "Forwarded: for=10.1.2.3"}},
	} {
		if w, out := s.call("GET", "/version", "", c.fields...); w.Code != c.status {
			t.Errorf("%s: got %d %v, want %d", c.what, w.Code, out, c.status)
		}
	}
}

// TestNothingInARequestWritesALineOfTheLog puts line ends into everything that a client
// names: its user, its path, its query and its fields.
func TestNothingInARequestWritesALineOfTheLog(t *testing.T) {
	h := start(t)
	log := &testhouse.Log{}
	o := h.api.Options
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	bad := New(o)
	for _, r := range bad.rows {
		if r.path == "/users/{name}" {
			r.handle = func(*call) (any, error) { return nil, errors.New("broken") }
		}
	}
	seen := &answers{seen: map[string]map[int]bool{}}
	s := &scene{h, seen.of(bad), seen}
	const forged = "%0A%0Dtime=2026-01-01T00:00:00Z%20level=ERROR%20msg=forged%1B[2J"
	s.does(500, "GET", "/users/x"+forged, "", "User-Agent: a\rb\x1b[2J", "X-Forwarded-For: 1\x1b[2J")
	s.does(401, "POST", "/session", `{"user":"x\n\rtime=2026 level=ERROR msg=forged\u001b[2J","password":"wrong password"}`, "User-Agent: x\x1b[2J")
	s.does(400, "GET", "/version?"+forged+"="+forged, "")
	text := log.String()
	if !strings.Contains(text, "a request to the API failed") {
		t.Fatalf("nothing was logged: %s", text)
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if !strings.HasPrefix(line, "time=20") || strings.Contains(line, " msg=forged") && !strings.Contains(line, `\ntime`) && !strings.Contains(line, `\n\rtime`) || strings.ContainsAny(line, "\r\x1b") {
			t.Errorf("a line that a client has made: %q", line)
		}
	}
	_, out := h.does("GET", "/events/history?types=auth.failed", "", 200, "", "as: viewer")
	for _, item := range out["items"].([]any) {
		if text, _ := item.(map[string]any)["text"].(string); strings.ContainsAny(text, "\n\r\x1b") {
			t.Errorf("an event of several lines: %q", text)
		}
	}
}

// TestAHeadOfAStreamEnds asks for the streams as HEAD: nobody is sent events then, and no
// place of a stream stays taken.
func TestAHeadOfAStreamEnds(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/events", "/logs/access/stream"} {
		rs, _ := h.call("HEAD", path, "", "as: viewer")
		if rs.StatusCode != 200 || rs.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("HEAD %s: %d %v", path, rs.StatusCode, rs.Header)
		}
	}
	testhouse.Eventually(t, "the places of the streams are free", func() bool { return h.api.streams.Load() == 0 })
	for _, path := range []string{"/users/" + h.tokens["admin"], "/nothing/" + h.tokens["viewer"] + "/x"} {
		h.does("GET", path, "", 400, "token_in_url", "as: admin")
	}
	h.does("GET", "/users/hg_somebody", "", 404, "not_found", "as: admin")
}

// TestOneWhoLooksLeavesStreamsForOthers has a viewer who holds as many as one may have.
func TestOneWhoLooksLeavesStreamsForOthers(t *testing.T) {
	h := start(t)
	for range maxStreamsOfOne {
		if !h.api.open.acquire("token:viewer") {
			t.Fatal("refused too early")
		}
	}
	h.does("GET", "/events", "", 503, "overloaded", "as: viewer")
	if rs, _ := h.call("HEAD", "/events", "", "as: admin"); rs.StatusCode != 200 {
		t.Errorf("another: %d", rs.StatusCode)
	}
	for range maxStreamsOfOne {
		h.api.open.release("token:viewer")
	}
	if rs, _ := h.call("HEAD", "/events", "", "as: viewer"); rs.StatusCode != 200 || len(h.api.open.of) > 1 {
		t.Errorf("after it has let go: %d, %v", rs.StatusCode, h.api.open.of)
	}
}

// TestALargeBodyOfAStrangerIsNotDecoded holds what somebody who has not signed in may cost.
func TestALargeBodyOfAStrangerIsNotDecoded(t *testing.T) {
	h := start(t)
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `"passwort%d":1,`, i)
	}
	for _, path := range []string{"/session", "/setup"} {
		h.does("POST", path, `{`+strings.Repeat(many.String(), 2)+`"user":"x"}`, 413, "too_large")
	}
	_, out := h.does("POST", "/session", `{`+many.String()[:strings.Index(many.String(), `"passwort500"`)]+`"user":"x"}`, 400, "unknown_field")
	if list, _ := out["problems"].([]any); len(list) > 20 {
		t.Errorf("%d problems", len(list))
	}
	_, out = h.does("POST", "/users", `{`+many.String()+`"name":"x"}`, 400, "unknown_field", "as: admin")
	if list, _ := out["problems"].([]any); len(list) != 20 {
		t.Errorf("%d problems, want 20", len(list))
	}
	_, out = h.does("POST", "/proxies", `{`+many.String()+`"name":"x"}`, 400, "unknown_field", "as: admin", always)
	if list, _ := out["problems"].([]any); len(list) != 20 {
		t.Errorf("%d problems with an object of the configuration, want 20", len(list))
	}
}

// TestTheNameOfAUserHasOneWord signs in with either.
func TestTheNameOfAUserHasOneWord(t *testing.T) {
	h := start(t)
	for _, word := range []string{"user", "name"} {
		h.does("POST", "/session", `{"`+word+`":"ann","password":"`+good+`"}`, 201, "")
		h.does("POST", "/setup", `{"token":"x","`+word+`":"eve","password":"`+good+`"}`, 403, "forbidden")
	}
	h.does("POST", "/session", `{"user":"ann","name":"ann","password":"`+good+`"}`, 400, "unknown_field")
}
