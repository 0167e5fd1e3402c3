package upstream

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/testhouse"
)

// awaited is a body that comes when the test lets it.
type awaited struct {
	exchange.Body
	come   chan struct{} // closed when it comes
	gone   chan struct{} // closed by Close
	closes sync.Once
}

func (a *awaited) Ready() bool { return false }

func (a *awaited) Read(p []byte) (int, error) {
	select {
	case <-a.come:
		return a.Body.Read(p)
	case <-a.gone:
		return 0, io.ErrClosedPipe
	}
}

func (a *awaited) Close() error {
	a.closes.Do(func() { close(a.gone) })
	return nil
}

// TestAnswerBeforeTheBody is passed on: a body that has not come whole is on its way to the
// server that has answered, and cannot be sent to another.
func TestAnswerBeforeTheBody(t *testing.T) {
	for _, length := range []int64{9, -1} {
		address := testhouse.Server(t, func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, busy)
			}
			_, _ = io.Copy(io.Discard, c)
		})
		good := newOdd(t, respondText(fine))
		s, _ := withRetry(t, on("503"), &odd{address: address}, good)
		body := &awaited{Body: exchangetest.Body("some text"), come: make(chan struct{}), gone: make(chan struct{})}
		ex := exchangetest.New(t, exchangetest.Head("PUT", "/"), func(ex *exchange.Exchange) {
			ex.Request.Length, ex.Request.Body = length, body
		})
		equal(t, "status", exchangetest.Run(t, ex, s).Status, 503)
		_, requests := good.seen()
		equal(t, "requests of the other server", requests, 0)
	}
}
