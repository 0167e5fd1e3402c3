package interop

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// returning is a browser that keeps its cookie.
type returning struct {
	address, cookie string
	client          *http.Client
}

// visit returns the status and who has answered.
func (v *returning) visit(t *testing.T) (int, string) {
	t.Helper()
	rq, _ := http.NewRequest("GET", "http://"+v.address+"/", nil)
	if v.cookie != "" {
		rq.Header.Set("Cookie", v.cookie)
	}
	rs, err := v.client.Do(rq)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(rs.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rs.Cookies() {
		if c.Name == "headgate_split" {
			v.cookie = c.Name + "=" + c.Value
		}
	}
	return rs.StatusCode, string(body)
}

// split runs headgate split.
func (g *gate) split(words ...string) {
	g.t.Helper()
	words = append(append([]string{"split"}, words...), "--state", filepath.Join(g.dir, "state"))
	if out, err := exec.Command(cmp.Or(g.binary, os.Getenv(binaryFolder)), words...).CombinedOutput(); err != nil {
		g.t.Fatalf("headgate %v: %v\n%s", words, err, out)
	}
}

// A candidate that begins to fail is returned within two seconds, no visitor leaves the
// candidate while its share grows, and kill -9 changes nothing. The document stays as it is.
func TestSplitReturnsACandidate(t *testing.T) {
	var bad atomic.Bool
	stable := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "stable") }))
	t.Cleanup(stable.Close)
	candidate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if bad.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		io.WriteString(w, "candidate")
	}))
	t.Cleanup(candidate.Close)
	web := free(t)
	config := fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
proxies:
  shop:
    routes:
      - servers: [{url: %q}, {url: %q, group: candidate}]
        split: {stable: 95, candidate: 5, rollback: {within: 20s, min_requests: 50}}
`, web, stable.URL, candidate.URL)
	g := start(t, config)
	phase := func() (string, int) {
		var s struct {
			Splits []struct {
				Phase string
				Share int
			}
		}
		if err := g.status("", &s); err != nil || len(s.Splits) != 1 {
			t.Fatalf("splits: %+v, %v", s.Splits, err)
		}
		return s.Splits[0].Phase, s.Splits[0].Share
	}

	visitors := make([]*returning, 300)
	client := &http.Client{Timeout: patience}
	in := map[*returning]bool{}
	for i := range visitors {
		visitors[i] = &returning{address: web, client: client}
		_, who := visitors[i].visit(t)
		in[visitors[i]] = who == "candidate"
	}
	for _, share := range []int{5, 25, 50} {
		g.split("promote", "shop", "--to", fmt.Sprint(share))
		n := 0
		for _, v := range visitors {
			status, who := v.visit(t)
			if status != 200 {
				t.Fatalf("status %d", status)
			}
			if in[v] && who != "candidate" {
				t.Fatalf("at %d%% a visitor has left the candidate", share)
			}
			if in[v] = who == "candidate"; in[v] {
				n++
			}
		}
		t.Logf("at %d%%: %d of %d visitors", share, n, len(visitors))
		if off := n - 3*share; off < -36 || off > 36 {
			t.Errorf("at %d%% the candidate has %d of %d visitors", share, n, len(visitors))
		}
	}

	bad.Store(true)
	for _, v := range visitors[:120] { // half of them get 500
		v.visit(t)
	}
	began := time.Now()
	for word := ""; word != "returned"; <-time.After(10 * time.Millisecond) {
		if word, _ = phase(); time.Since(began) > 2*time.Second {
			t.Fatalf("after %v the split is %s", time.Since(began), word)
		}
	}
	t.Logf("returned %v after the last error", time.Since(began))
	all := func() {
		t.Helper()
		for _, v := range visitors {
			if status, who := v.visit(t); status != 200 || who != "stable" {
				t.Fatalf("after the return a visitor gets %d from %s", status, who)
			}
		}
	}
	all()

	<-time.After(3 * time.Second / 2) // the state is written once a second
	g.kill()
	g.start(config)
	if word, share := phase(); word != "returned" || share != 0 {
		t.Errorf("after kill -9 the split is %s at %d%%", word, share)
	}
	all()
	if data, err := os.ReadFile(g.file); err != nil || string(data) != config {
		t.Errorf("the document has changed: %v\n%s", err, data)
	}
	if log := g.log.String(); !strings.Contains(log, `"split is returned"`) || !strings.Contains(log, "errors: candidate") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}
