package interop

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestServerThatIsHeadgateItself holds that a request which comes back again and
// again ends with 508 soon, however headgate is spoken to.
func TestServerThatIsHeadgateItself(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "h2c"} {
		address := free(t)
		g := start(t, fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {path: stdout}
ports: {web: {address: %q, protocol: http, h2c: true}}
proxies: {all: {routes: [{servers: [{url: "%s://%s"}]}]}}
`, address, scheme, address))
		rs, err := http.Get("http://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
		if rs.StatusCode != http.StatusLoopDetected {
			t.Errorf("%s: got %s", scheme, rs.Status)
		}
		g.end() // and with it the log
		if n := strings.Count(g.out.String(), "\n"); n < 2 || n > 20 {
			t.Errorf("%s: one request made %d", scheme, n)
		}
	}
}
