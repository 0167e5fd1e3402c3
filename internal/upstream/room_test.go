package upstream

import (
	"io"
	"net"
	"testing"
	"time"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/http2"
	"headgate/internal/testhouse"
)

// A place that is given back at the moment at which another request looks for one is not
// missed by it.
func TestAPlaceThatIsGivenBackMeanwhileIsFound(t *testing.T) {
	to := target(testhouse.Server(t, func(c net.Conn) {
		b := http2.AppendFrame(nil, http2.SettingSize, http2.FrameSettings, 0, 0)
		c.Write(http2.AppendSetting(b, http2.SettingMaxConcurrentStreams, 1))
		io.Copy(io.Discard, c)
	}), 1)
	to.HTTP2 = true
	p := newServers(t, settings, to).List()[0].pool
	ex := exchangetest.New(t)
	held, err := p.open(ex, false)
	if err != nil {
		t.Fatal(err)
	}
	p.multi.mu.Lock()
	p.multi.mu.alone = maxConnsPerPool - 1 // so that no other is opened
	p.multi.mu.Unlock()
	begin, done := make(chan struct{}), make(chan error)
	defer close(begin)
	go func() {
		for range begin {
			_, err := p.open(ex, false)
			done <- err
		}
	}()
	late := time.NewTimer(testhouse.Patience)
	defer late.Stop()
	for i := range 50_000 {
		begin <- struct{}{}
		for range i % 300 { // until about when the other one looks
			p.multi.waits.Load()
		}
		held.multi.Release()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-late.C:
			t.Fatalf("round %d: it waits though there is a place", i)
		}
	}
	held.multi.Release()
}
