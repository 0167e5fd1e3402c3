package upstream

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/testhouse"
)

// zeros is a request body that never ends, nor ever pauses.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
func (zeros) Ready() bool                { return true }
func (zeros) Close() error               { return nil }

// A server answers while the request is on its way, with a body that goes on until the
// connection closes, and resets the connection. The upload hears of that first, and what
// is read then ends like a body that is whole.
func TestAResetThatTheUploadHearsOfBreaksTheBodyOff(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		end := make(chan struct{})
		address := testhouse.Server(t, func(c net.Conn) {
			c.Read(make([]byte, 4096))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nsome text")
			<-end
			if orderly {
				c.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, io.LimitReader(c, 1<<20))
			} else {
				c.(*net.TCPConn).SetLinger(0)
			}
			c.Close()
		})
		s := newServers(t, settings, target(address, 1))
		ex := exchangetest.New(t, exchangetest.Head("POST", "/"))
		ex.Request.Body, ex.Request.Length = zeros{}, -1
		if answer := s.Respond(ex); answer != nil {
			t.Fatal(answer.Cause)
		}
		c := ex.Response.Body.(*conn)
		got := make([]byte, len("some text"))
		if _, err := io.ReadFull(c, got); err != nil {
			t.Fatal(err)
		}
		close(end)
		if err := c.upload.wait(); err == nil {
			t.Fatal("the upload has ended without an error")
		}
		rest, err := io.ReadAll(c)
		e := (*exchange.Error)(nil)
		switch broken := errors.As(err, &e) && e.Reason == exchange.UpstreamReset; {
		case orderly && err != nil:
			t.Errorf("an orderly end: %v", err)
		case !orderly && !broken:
			t.Errorf("a reset: %v, want %v", err, exchange.UpstreamReset)
		}
		equal(t, "the rest", string(bytes.TrimSpace(rest)), "")
		c.Close()
	}
}
