package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// manager asks the management API of a gate, by its admin socket.
type manager struct {
	t      *testing.T
	client *http.Client
}

// manager returns one for a gate, whether that runs or not.
func (g *gate) manager() *manager {
	g.t.Helper()
	link := filepath.Join(shortDir(g.t), "state")
	if err := os.Symlink(filepath.Join(g.dir, "state"), link); err != nil {
		g.t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(link, "admin.sock"))
	}}
	return &manager{g.t, &http.Client{Transport: tr, Timeout: patience}}
}

// reply is what came back; err says that nothing did.
type reply struct {
	status int
	etag   string
	body   map[string]any
	err    error
}

func (a *manager) ask(method, path, body, match string) reply {
	rq, err := http.NewRequest(method, "http://headgate/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	rq.Header.Set("Content-Type", "application/json")
	if match != "" {
		rq.Header.Set("If-Match", match)
	}
	rs, err := a.client.Do(rq)
	if err != nil {
		return reply{err: err}
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	out := reply{status: rs.StatusCode, etag: rs.Header.Get("ETag"), body: map[string]any{}, err: err}
	if err == nil && len(data) > 0 {
		out.err = json.Unmarshal(data, &out.body)
	}
	return out
}

// must asks, and wants a status.
func (a *manager) must(status int, method, path, body, match string) reply {
	a.t.Helper()
	out := a.ask(method, path, body, match)
	if out.err != nil || out.status != status {
		a.t.Fatalf("%s %s: %d %v, %v; want %d", method, path, out.status, out.body, out.err, status)
	}
	return out
}

// managed is a configuration that is changed by the API.
func managed(t *testing.T) string {
	return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
proxies:
  # The shop.
  shop: {description: "n0", virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200}}]}
  blog: {description: "h0", virtual_hosts: [blog.example.com], routes: [{fixed_response: {status: 200}}]}
`, free(t))
}

// written returns the number behind a letter in a description of the document.
func (g *gate) written(letter string) int {
	g.t.Helper()
	data, err := os.ReadFile(g.file)
	if err != nil {
		g.t.Fatal(err)
	}
	return numberIn(g.t, string(data), letter)
}

func numberIn(t *testing.T, text, letter string) int {
	t.Helper()
	found := regexp.MustCompile(`"?\b`+letter+`(\d+)\b"?`).FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("%d descriptions with %s:\n%s", len(found), letter, text)
	}
	n, err := strconv.Atoi(found[0][1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOfTwoWritersOneIsLate has two clients change an object that both have seen, again and
// again: one is told that the other was faster, and what the object is now.
func TestOfTwoWritersOneIsLate(t *testing.T) {
	t.Parallel()
	g := start(t, managed(t))
	a := g.manager()
	for round := range 40 {
		tag := a.must(200, "GET", "/proxies/shop", "", "").etag
		var both [2]reply
		var all sync.WaitGroup
		for i := range both {
			all.Go(func() {
				both[i] = a.ask("PATCH", "/proxies/shop", fmt.Sprintf(`{"description":"n%d"}`, 2*round+i+1), tag)
			})
		}
		all.Wait()
		late := 0
		if both[0].status == 412 {
			late, both[0], both[1] = 1, both[1], both[0]
		}
		if both[0].status != 200 || both[1].status != 412 || both[1].body["code"] != "stale" {
			t.Fatalf("round %d: %d %v and %d %v", round, both[0].status, both[0].body, both[1].status, both[1].body)
		}
		want := 2*round + 1 + late
		current, _ := both[1].body["current"].(map[string]any)
		if g.written("n") != want || current["description"] != fmt.Sprintf("n%d", want) {
			t.Fatalf("round %d: the document has n%d, the late one was told %v, want n%d", round, g.written("n"), current["description"], want)
		}
	}
}

// TestAHandEditMeetsAWriteOfTheAPI edits the document by hand, as editors do, while the API
// writes it. What was written by hand always stays; what the API has said to be done is in
// the document, or was there when the other came, and is a revision.
func TestAHandEditMeetsAWriteOfTheAPI(t *testing.T) {
	t.Parallel()
	g := start(t, managed(t))
	a := g.manager()
	both, refused, over, longest := 0, 0, 0, 10*time.Millisecond
	for round := 1; round <= 60; round++ {
		before, err := os.ReadFile(g.file)
		if err != nil {
			t.Fatal(err)
		}
		tag := a.must(200, "GET", "/config", "", "").etag
		byHand := regexp.MustCompile(`\bh\d+\b`).ReplaceAllString(string(before), fmt.Sprintf("h%d", round))
		if round%2 == 0 {
			tag = "*" // of whatever there is
		}
		var out reply
		var all sync.WaitGroup
		pause := time.Duration(float64(longest) * rand.Float64() * rand.Float64())
		begun := time.Now()
		all.Go(func() { out = a.ask("PATCH", "/proxies/shop", fmt.Sprintf(`{"description":"n%d"}`, round), tag) })
		all.Go(func() {
			<-time.After(pause) // anywhere in the write, or after it
			g.put("headgate.yaml", byHand)
		})
		all.Wait()
		longest = max(min(time.Since(begun), 100*time.Millisecond), longest)
		if g.written("h") != round {
			t.Fatalf("round %d: the edit by hand is lost: %d %v", round, out.status, out.body)
		}
		n := g.written("n")
		switch {
		case out.err != nil || out.status != 200 && out.status != 412:
			t.Fatalf("round %d: %d %v, %v", round, out.status, out.body, out.err)
		case out.status == 412 && n == round:
			t.Fatalf("round %d: a write that was refused is in the document", round)
		case out.status == 412:
			refused++
		case n == round:
			both++
		default: // written first, and then replaced by the file of the editor, which is older
			over++
			list := a.must(200, "GET", "/revisions?limit=3", "", "")
			kept := false
			for _, item := range list.body["items"].([]any) {
				r := a.must(200, "GET", fmt.Sprintf("/revisions/%v", item.(map[string]any)["number"]), "", "")
				kept = kept || strings.Contains(fmt.Sprint(r.body["documents"]), fmt.Sprintf("n%d", round))
			}
			if !kept {
				t.Fatalf("round %d: what the API has said to be done is in no revision", round)
			}
		}
	}
	t.Logf("both in: %d, the API refused: %d, the editor's file over a write that ended before: %d", both, refused, over)
}

// TestNothingAcknowledgedIsLostToKills kills headgate at random during a thousand writes
// through the API. Each start has the last one that was acknowledged, or the one that was
// on its way, and nothing half.
func TestNothingAcknowledgedIsLostToKills(t *testing.T) {
	t.Parallel()
	const writes, kills = 1000, 12
	text := managed(t)
	g := start(t, text)
	a := g.manager()
	acknowledged, sent, killed, cut := 0, 0, 0, 0
	at := make(chan struct{}, 1)
	for sent < writes {
		until := sent + writes/(kills+1) - 20 + rand.IntN(40)
		over := make(chan struct{})
		go func() {
			defer close(over)
			<-at
			<-time.After(time.Duration(rand.IntN(8000)) * time.Microsecond) // at any moment of a write
			g.cmd.Process.Kill()
		}()
		for {
			if sent++; sent == until {
				at <- struct{}{}
			}
			out := a.ask("PATCH", "/proxies/shop", fmt.Sprintf(`{"description":"n%d"}`, sent), "*")
			if out.err != nil {
				cut++
				break
			}
			if out.status != 200 {
				t.Fatalf("write %d: %d %v", sent, out.status, out.body)
			}
			acknowledged = sent
		}
		<-over
		killed++
		g.kill()
		data, err := os.ReadFile(g.file)
		if err != nil {
			t.Fatal(err)
		}
		g.start(string(data)) // it has what the last process has left, or puts that right
		shop := a.must(200, "GET", "/proxies/shop", "", "")
		n := numberIn(t, fmt.Sprint(shop.body["description"]), "n")
		if n != acknowledged && n != sent {
			t.Fatalf("after kill %d: n%d is in force, n%d was acknowledged, n%d was on its way", killed, n, acknowledged, sent)
		}
		if g.written("n") != n {
			t.Fatalf("after kill %d: n%d is in force, and n%d in the document", killed, n, g.written("n"))
		}
	}
	left, err := filepath.Glob(filepath.Join(g.dir, ".headgate-save-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	t.Logf("%d writes, %d kills, %d of them with a write on its way; acknowledged and lost: 0", sent, killed, cut)
}
