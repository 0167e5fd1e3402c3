package upstream

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

// A server that would like a certificate, takes none as well, reads a request and
// dies, may have done what it says: a POST goes to no other one. The connection
// did come about.
func TestWhatAServerHasReadIsNotSentAgain(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			var requests atomic.Int32
			server := func() Target {
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					requests.Add(1)
					panic(http.ErrAbortHandler)
				}))
				s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
				s.EnableHTTP2 = protocol == "h2"
				s.Config.ErrorLog = log.New(io.Discard, "", 0)
				s.StartTLS()
				t.Cleanup(s.Close)
				to := target(s.Listener.Addr().String(), 1)
				to.Secure = &Secure{Name: "example.com", Unverified: true}
				return to
			}
			s := newServersWith(t, Policy{}, server(), server(), server())
			ex := exchangetest.New(t, exchangetest.Head("POST", "/buy"))
			ex.Limits.ConnectTimeout, ex.Limits.RequestTimeout = 5*time.Second, 5*time.Second
			exchangetest.Run(t, ex, s)
			equal(t, "requests that servers have read", requests.Load(), 1)
			if ex.Reason != exchange.UpstreamTLS && ex.Reason != exchange.UpstreamReset {
				t.Errorf("reason %v, want that the server broke off", ex.Reason)
			}
		})
	}
}
