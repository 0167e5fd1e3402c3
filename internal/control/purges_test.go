package control

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"headgate/internal/feature/cache"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// counted is a server whose responses have their number, and may be stored.
func counted(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		fmt.Fprint(w, n.Add(1))
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// fetched returns the body of a response.
func fetched(t *testing.T, url string) string {
	t.Helper()
	rs, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	if err != nil || rs.StatusCode != http.StatusOK {
		t.Fatal(rs.Status, string(data), err)
	}
	return string(data)
}

// A purge on one machine empties the caches of all, with those that did not hear of it; one
// that cannot be passed on is refused.
func TestAPurgeIsCarriedOutOnAllMachines(t *testing.T) {
	e := newEngine()
	away := e.alone() // of b
	at := testhouse.Addresses(t, 2)
	text := fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: "${SHARED_PORT}", protocol: http}}
proxies: {shop: {cache: {}, routes: [{servers: [{url: "http://%s"}]}]}}
`, counted(t))
	t.Setenv("SHARED_PORT", at[0])
	a := newMember(t, "a", text, e)
	t.Setenv("SHARED_PORT", at[1])
	b := newMember(t, "b", "", away)
	testhouse.Eventually(t, "b serves", func() bool { return b.c.Plan() != nil && b.c.Plan().Config().Proxies["shop"] != nil })

	stored := func(path string) string {
		t.Helper()
		first := fetched(t, "http://"+at[1]+path)
		if again := fetched(t, "http://"+at[1]+path); again != first {
			t.Fatalf("%s is not stored: %s, then %s", path, first, again)
		}
		return first
	}
	gone := func(path, was string) {
		t.Helper()
		testhouse.Eventually(t, path+" is not stored on b any more", func() bool { return fetched(t, "http://"+at[1]+path) != was })
	}
	x, y := stored("/x"), stored("/y")
	purge := func(m *member, url string) error {
		_, _, err := m.c.Purge(t.Context(), cache.Purge{URL: url})
		return err
	}
	if err := purge(a, "http://"+at[1]+"/x"); err != nil {
		t.Fatal(err)
	}
	gone("/x", x)
	if now := fetched(t, "http://"+at[1]+"/y"); now != y {
		t.Errorf("a purge of /x has purged /y: %s, then %s", y, now)
	}

	// A machine that has missed purges does not know what they were about.
	away.away.Store(true)
	if err := purge(b, "http://"+at[1]+"/y"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a purge without the store: %v", err)
	}
	if now := fetched(t, "http://"+at[1]+"/y"); now != y {
		t.Errorf("a purge that was refused has purged: %s, then %s", y, now)
	}
	away.away.Store(false)
	data := `{"sequence": 7, "node": "a", "purge": {"url": "http://elsewhere/"}}`
	if _, err := e.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.KeyPurge, Value: []byte(data)}}}); err != nil {
		t.Fatal(err)
	}
	gone("/y", y)
}
