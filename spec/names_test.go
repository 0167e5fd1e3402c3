package spec

import (
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"headgate/internal/server/resolve/resolvetest"
)

// get and answer are the steps of a request whose way does not matter.
func get(path string) txtar.File {
	return txtar.File{Name: "request", Data: []byte("GET " + path + " HTTP/1.1\nHost: a.example\n\n")}
}

func upstreamGets(path string) txtar.File {
	return txtar.File{Name: "upstream gets", Data: []byte("GET " + path + " HTTP/1.1\nHost: a.example\nvia: proxy\n\n")}
}

func respond(step, status string) txtar.File {
	return txtar.File{Name: step, Data: []byte("HTTP/1.1 " + status + "\nContent-Length: 2\n\nok\\\n")}
}

// Servers are found by the name servers of upstreams.resolvers, also by the records
// of a service; a name of which nobody knows is 502, and stays one no longer than
// it is not known.
func TestServersAreFoundByTheirNames(t *testing.T) {
	zone := resolvetest.New(t)
	zone.Set("app.test", resolvetest.Record{TTL: 60, IP: "127.0.0.1"})
	run(t, script{name: "names", config: fmt.Sprintf(`
version: 1
ports: {web: {address: "127.0.0.1:8080", protocol: http}}
admin: {address: ""}
access_log: {enabled: false}
upstreams: {resolvers: ["%v"]}
proxies:
  p:
    forwarded_style: off
    routes:
      - {path: /app, servers: [{url: "http://app.test:UPSTREAMPORT/b"}]}
      - {path: /none, servers: [{url: "http://none.test"}, {url: "srv+http://_http._tcp.none.test"}]}
      - {path: /mixed, servers: [{url: "http://none.test"}, {url: "http://app.test:UPSTREAMPORT"}]}
`, zone.Address), steps: []txtar.File{
		get("/app/1"), upstreamGets("/b/1"), respond("upstream answers", "200 OK"), respond("response", "200 OK"),
		get("/none"), {Name: "response", Data: []byte("HTTP/1.1 502 Bad Gateway\n\n...upstream_dns...\n")},
		get("/mixed/2"), upstreamGets("/2"), respond("upstream answers", "200 OK"), respond("response", "200 OK"),
	}}, transports[0])
}
