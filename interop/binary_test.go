package interop

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestBinary holds that the binary serves and takes a change, by net/http's
// client and server.
func TestBinary(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "server "+r.URL.Path) }))
	defer server.Close()
	address := free(t)
	config := `
version: 1
admin: {address: ""}
ports: {web: {address: "` + address + `", protocol: http}}
proxies: {all: {routes: [{%s}]}}
`
	g := start(t, fmt.Sprintf(config, "servers: [{url: "+server.URL+"}]"))
	for _, want := range []string{"server /x", "changed"} {
		rs, err := http.Get("http://" + address + "/x")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(rs.Body)
		rs.Body.Close()
		if string(body) != want || err != nil {
			t.Fatalf("got %q, %v; want %q", body, err, want)
		}
		g.apply(fmt.Sprintf(config, "fixed_response: {status: 200, body: changed}"))
	}
}
