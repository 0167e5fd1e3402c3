package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// wanted is a request of a test that asks two proxies the same.
type wanted struct {
	method, host, path, body string
	header                   http.Header
}

// authHeader is what the auth server of tests wants to see.
const authHeader = "X-Pass"

// told is a difference of which the report says that it is one: note is a part of what
// it says, of which requests is what follows from it.
type told struct {
	note string
	of   func(rq wanted, want, have answer) bool
}

// imported is the document and the report that headgate makes of a configuration.
type imported struct {
	document string
	entries  []struct {
		Verdict, Note, Directive string
		Line                     int
	}
}

// importOf imports a configuration by the binary.
func importOf(t *testing.T, source string, files ...string) imported {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	out, err := exec.Command(os.Getenv(binaryFolder), slices.Concat([]string{"import", source}, files, []string{"--report", report})...).Output()
	if err != nil {
		t.Fatalf("import: %v\n%s", err, out)
	}
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	got := imported{document: string(out)}
	if err := json.Unmarshal(data, &struct{ Entries any }{&got.entries}); err != nil {
		t.Fatal(err)
	}
	return got
}

// equivalent asks both proxies the same requests. What is answered otherwise must follow
// from a difference that the report tells.
func equivalent(t *testing.T, theirs, ours string, got imported, requests []wanted, differences []told) {
	t.Helper()
	for _, d := range differences {
		if !slices.ContainsFunc(got.entries, func(e struct {
			Verdict, Note, Directive string
			Line                     int
		}) bool {
			return e.Verdict != "same" && strings.Contains(e.Note, d.note)
		}) {
			t.Errorf("the report does not tell %q", d.note)
		}
	}
	alike, known, wrong := 0, 0, 0
	shown := map[string]bool{} // one of each host and path
	for _, rq := range requests {
		want, have := askAll(theirs, rq), askAll(ours, rq)
		switch {
		case want == have:
			alike++
		case slices.ContainsFunc(differences, func(d told) bool { return d.of(rq, want, have) }):
			known++
		default:
			if wrong++; !shown[rq.host+rq.path] && len(shown) < 20 {
				shown[rq.host+rq.path] = true
				t.Errorf("%s %s%s %v with %d bytes:\ntheirs %+v\nours   %+v", rq.method, rq.host, rq.path, rq.header, len(rq.body), want, have)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d are answered otherwise", wrong)
	}
	t.Logf("%d requests: %d are answered alike, %d otherwise as the report tells, %d otherwise without a word", len(requests), alike, known, wrong)
}

// asker follows no redirects, and keeps its connections.
var asker = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{DisableCompression: true}, Timeout: patience}

// askAll returns what can be seen of an answer.
func askAll(address string, rq wanted) answer {
	req, err := http.NewRequest(rq.method, "http://"+address, strings.NewReader(rq.body))
	if err != nil {
		return answer{err: err}
	}
	req.Host, req.URL.Opaque = rq.host, rq.path
	for name, values := range rq.header {
		req.Header[name] = values
	}
	resp, err := asker.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{err: err}
	}
	if resp.Header.Get("X-Server") == "" && resp.StatusCode != http.StatusOK {
		text = nil // each has its own pages of errors
	}
	return answer{status: resp.StatusCode, location: resp.Header.Get("Location"), frame: resp.Header.Get("X-Frame-Options"), auth: resp.Header.Get("Www-Authenticate"),
		added: strings.Join(resp.Header.Values("X-Answer"), ","), body: string(text), served: resp.Header.Get("X-Server") != ""}
}

// answer is what can be seen of an answer. Its error says that there is none.
type answer struct {
	status                             int
	location, frame, auth, added, body string
	served                             bool // by a server, not by the proxy
	err                                error
}

// bare is the answer without the headers that rules add.
func (a answer) bare() answer {
	a.frame, a.added = "", ""
	return a
}

// echo is a server that says what it got.
func echo(t *testing.T, name string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Server", name)
		w.Header().Add("X-Answer", "from "+name)
		if strings.HasPrefix(r.URL.Path, "/location/") {
			w.Header().Set("Location", "http://internal.example.com/there")
			w.WriteHeader(http.StatusFound)
		}
		fmt.Fprintf(w, "%s: %s %s host=%s real=%q secret=%q list=%q who=%q auth=%q body=%d", name, r.Method, r.URL.RequestURI(), r.Host, r.Header.Values("X-Real-Ip"), r.Header.Values("X-Secret"), r.Header.Values("X-List"), r.Header.Values("X-Who"), r.Header.Get("Authorization"), len(body))
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// doorkeeper is an auth server, which lets in who has the right header.
func doorkeeper(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/check" || r.Header.Get(authHeader) != "right" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("X-Who", "anna")
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// awaitAnswer waits until a proxy answers a request with a status.
func awaitAnswer(t *testing.T, address string, rq wanted, status int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if a := askAll(address, rq); a.status == status {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%s answers %+v, want status %d", address, a, status)
		}
	}
}

// startPeer starts another proxy and waits until it answers.
func startPeer(t *testing.T, address string, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	said := &record{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if r := askAll(address, wanted{method: "GET", host: "x", path: "/"}); r.err == nil {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%s does not answer: %v\n%s", program, r.err, said)
		}
	}
}
