package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// misbehaving is a server that answers each request, and then sends what nobody asked for:
// clients of net/http log a line of their own for that.
func misbehaving(t *testing.T) (address string, requests func(path string) bool) {
	t.Helper()
	var traces, hooks atomic.Int64
	address = serveStreams(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		rq, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, rq.Body); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		if rq.URL.Path == "/traces" {
			traces.Add(1)
		} else {
			hooks.Add(1)
		}
		io.WriteString(c, "HTTP/1.1 500 Nobody Asked\r\nContent-Length: 0\r\n\r\n")
		in.ReadByte() // until the client closes
	})
	return address, func(path string) bool {
		if path == "/traces" {
			return traces.Load() > 0
		}
		return hooks.Load() > 0
	}
}

// TestEachLineOfTheLogIsJSON checks that what libraries write to Go's standard logger, while
// a collector and a receiver of webhooks misbehave, keeps the format of the log (issue 34).
func TestEachLineOfTheLogIsJSON(t *testing.T) {
	address, got := misbehaving(t)
	web := free(t)
	config := fmt.Sprintf(`version: 1
ports: {web: {address: %q, protocol: http}}
access_log: {enabled: false}
tracing: {enabled: true, endpoint: "http://%s/traces", sample: 100}
webhooks: {ops: {url: "http://%[2]s/hook", secret: "sixteen bytes or more"}}
proxies: {site: {virtual_hosts: [site.test], routes: [{fixed_response: {status: 204}}]}}
`, web, address)
	g := prepare(t)
	g.flags = []string{"--log-format", "json", "--log-level", "debug"}
	g.start(config)
	g.apply(strings.Replace(config, "site: {", "site: {description: changed, ", 1)) // an event for the receiver
	eventually(t, "the collector and the receiver get requests", func() bool {
		rq, err := http.NewRequest("GET", "http://"+web+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		rq.Host = "site.test"
		rs, err := http.DefaultClient.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
		return got("/traces") && got("/hook")
	})
	eventually(t, "the library logs what they send", func() bool { return strings.Contains(g.log.String(), "Unsolicited response") })
	if c, err := net.Dial("tcp", web); err == nil { // and a client that speaks no HTTP
		io.WriteString(c, "\x16\x03\x01garbage\r\n\r\n")
		io.Copy(io.Discard, c)
		c.Close()
	}
	g.stop()
	for line := range strings.Lines(g.log.String()) {
		if !json.Valid([]byte(line)) || !strings.HasPrefix(line, "{") {
			t.Errorf("a line is no JSON: %s", line)
		}
	}
}
