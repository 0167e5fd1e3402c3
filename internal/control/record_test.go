package control

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

// logs are the files that access logs are written to in a test.
type logs struct {
	t   *testing.T
	dir string
}

func (l *logs) path(name string) string { return filepath.Join(l.dir, name) }

// has waits until a file has a text.
func (l *logs) has(name, text string) {
	l.t.Helper()
	testhouse.Eventually(l.t, name+" has "+text, func() bool {
		b, _ := os.ReadFile(l.path(name))
		return strings.Contains(string(b), text)
	})
}

// not fails when a file has a text. Lines behind it have to be there already.
func (l *logs) not(name, text string) {
	l.t.Helper()
	if b, _ := os.ReadFile(l.path(name)); strings.Contains(string(b), text) {
		l.t.Errorf("%s has %s:\n%s", name, text, b)
	}
}

// TestAProxyHasAnAccessLogOfItsOwn holds that a proxy's lines go to the file that it
// names, which may be another's too, through changes and when logs are rotated.
func TestAProxyHasAnAccessLogOfItsOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Shown", strings.Repeat("shown ", 3))
		w.Header().Set("X-Hidden", "hidden")
		_, _ = io.WriteString(w, "ok")
	}))
	defer server.Close()
	at := testhouse.Address(t)
	files := &logs{t, t.TempDir()}
	text := func(ownLog string) string {
		return fmt.Sprintf(`version: 1
admin: {address: ""}
ports: {web: {address: %q, protocol: http}}
access_log: {path: %q, response_headers: [x-shown, Content-Type]}
proxies:
  common: {virtual_hosts: [common.test], routes: [{servers: [{url: %q}]}]}
  own: {virtual_hosts: [own.test], access_log: {path: %q}, routes: [{servers: [{url: %[3]q}]}]}
  other: {virtual_hosts: [other.test], access_log: {path: %[5]q}, routes: [{fixed_response: {status: 204}}]}
  common_too: {virtual_hosts: [too.test], access_log: {path: %[6]q}, routes: [{fixed_response: {status: 204}}]}
`, at, files.path("common.log"), server.URL, files.path(ownLog), files.path("./shared.log"), files.path("common.log"))
	}
	h := start(t, text("shared.log"))
	ask := func(host, path string) {
		t.Helper()
		rq, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+at+path, nil)
		rq.Host = host
		rs, err := http.DefaultClient.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, rs.Body)
		rs.Body.Close()
	}
	ask("common.test", "/a")
	ask("own.test", "/b")
	ask("other.test", "/c")
	ask("too.test", "/d")
	ask("nobody.test", "/e")
	for _, path := range []string{"/a", "/d", "/e"} {
		files.has("common.log", `"path":"`+path+`"`)
	}
	for _, path := range []string{"/b", "/c"} {
		files.has("shared.log", `"path":"`+path+`"`)
		files.not("common.log", `"path":"`+path+`"`)
	}
	files.has("common.log", `"response_headers":{"x-shown":"shown shown shown","content-type":"text/plain; charset=utf-8"}`)
	files.has("shared.log", `"response_headers":{"x-shown":"shown shown shown","content-type":"text/plain; charset=utf-8"}`)
	files.not("shared.log", "hidden")

	if err := os.Rename(files.path("shared.log"), files.path("shared.log.1")); err != nil {
		t.Fatal(err)
	}
	if err := h.c.Reopen(); err != nil {
		t.Fatal(err)
	}
	ask("own.test", "/f")
	files.has("shared.log", `"path":"/f"`)
	files.not("shared.log.1", `"path":"/f"`)

	before := h.c.records.current.Load()
	write(t, h.file, text("own.log"))
	if err := h.c.Reload(); err != nil {
		t.Fatal(err)
	}
	now := h.c.records.current.Load()
	for _, name := range []string{"shared.log", "common.log"} {
		if path := files.path(name); before.logs[path] != now.logs[path] {
			t.Errorf("a change of one log opens %s again", name)
		}
	}
	ask("own.test", "/g")
	ask("other.test", "/h")
	files.has("own.log", `"path":"/g"`)
	files.has("shared.log", `"path":"/h"`)
	files.not("shared.log", `"path":"/g"`)

	write(t, h.file, text("missing/own.log"))
	if err := h.c.Reload(); err == nil || !strings.Contains(err.Error(), "own") || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a log that cannot be opened: %v", err)
	}
	ask("own.test", "/i")
	files.has("own.log", `"path":"/i"`)

	page := metricsPage(h)
	for _, line := range []string{
		`headgate_responses_total{method="GET",port="web",proxy="other",route="/",status="204"}`,
		`headgate_upstream_first_byte_seconds_count{proxy="own",route="/",server="` + server.URL + `"}`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("%s is missing in %s", line, lines(page, "headgate_"))
		}
	}
}

// TestAStreamHasAnAccessLogOfItsOwn holds the same for TCP and UDP proxies, whose lines
// come when a connection or session ends: then the file that counts may be another.
func TestAStreamHasAnAccessLogOfItsOwn(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://")
	at := testhouse.Addresses(t, 5)
	files := &logs{t, t.TempDir()}
	text := func(own string) string {
		return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {path: %q}
tcp_proxies:
  common: {address: %q, servers: [{address: %q}]}
  own: {address: %q, access_log: {path: %q}, servers: [{address: %[3]q}]}
  quiet: {address: %[6]q, access_log: {enabled: false}, servers: [{address: %[3]q}]}
udp_proxies:
  datagrams: {address: %[7]q, idle_timeout: 100ms, access_log: {path: %[8]q}, servers: [{address: %[3]q}]}
`, files.path("common.log"), at[0], to, at[1], files.path(own), at[2], at[3], files.path("udp.log"))
	}
	h := start(t, text("own.log"))
	use := func(network, address string) net.Conn {
		t.Helper()
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "x")
		return c
	}
	long := use("tcp", at[1])
	for _, a := range []string{at[2], at[0], at[1]} {
		use("tcp", a).Close()
	}
	use("udp", at[3]).Close()
	files.has("common.log", `"proxy":"common"`)
	files.has("own.log", `"proxy":"own"`)
	files.has("udp.log", `"proxy":"datagrams"`)
	for _, name := range []string{"own", "datagrams", "quiet"} {
		files.not("common.log", `"proxy":"`+name+`"`)
	}
	// The log of a connection that is open is named anew, and one that began with the
	// old name ends in the old file.
	write(t, h.file, text("new.log"))
	if err := h.c.Reload(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(long, strings.Repeat("y", 999))
	long.Close()
	files.has("own.log", `"bytes_received":1000`)
	use("tcp", at[1]).Close()
	files.has("new.log", `"proxy":"own"`)
	write(t, h.file, text("missing/own.log"))
	if err := h.c.Reload(); err == nil || !strings.Contains(err.Error(), "tcp_proxies.own.access_log.path") {
		t.Errorf("a log that cannot be opened: %v", err)
	}
}
