package spec

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// A server whose address leads back to the port itself does not make a request go
// round for ever.
func TestServerThatIsThePortItself(t *testing.T) {
	run(t, script{name: "loop_itself", config: `
version: 1
ports: {web: {address: "127.0.0.1:8080", protocol: http}}
admin: {address: ""}
access_log: {enabled: false}
proxies: {p: {routes: [{servers: [{url: "http://LISTEN"}]}]}}
`, steps: []txtar.File{
		{Name: "request", Data: []byte("GET / HTTP/1.1\nHost: a.example\n\n")},
		{Name: "response", Data: []byte("HTTP/1.1 508 Loop Detected\n\n...loop...\n")},
	}}, transports[0])
}
