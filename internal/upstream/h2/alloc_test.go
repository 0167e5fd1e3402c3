//go:build !race

package h2

import (
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/http2"
)

// A request asks for nothing on the collector beside what HPACK makes of the
// answer's fields.
func TestARequestAllocatesLittle(t *testing.T) {
	conn, server := meet(t, Settings{})
	go func() {
		for f := server.next(); f.Type == http2.FrameHeaders; f = server.next() {
			server.send(join(raw(http2.FrameHeaders, 4, f.Stream, []byte{0x88}), data(f.Stream, "hello", http2.FlagEndStream)))
		}
	}()
	ex, owner, p := exchangetest.New(t), &nobody{}, make([]byte, 100)
	n := testing.AllocsPerRun(200, func() {
		conn.Reserve()
		s := NewStream(ex, exchange.Now(), owner)
		if err := s.Do(conn, []byte{0x82}); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := s.Read(p); err != nil {
				break
			}
		}
		s.Close()
	})
	// The test's server makes six of its own.
	if n > 8 {
		t.Errorf("%v allocations", n)
	}
}
