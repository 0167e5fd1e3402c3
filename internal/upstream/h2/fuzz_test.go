package h2

import (
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/http2"
)

// FuzzServer plays a server that answers a request with any bytes: the request
// ends, the connection ends, and nothing is left behind.
func FuzzServer(f *testing.F) {
	f.Add(http2.AppendRSTStream(nil, 1, http2.RefusedStream))
	f.Add(append(raw(http2.FrameHeaders, 4, 1, []byte{0x88}), data(1, "body", http2.FlagEndStream)...))
	f.Add(append(raw(http2.FrameHeaders, 4, 1, []byte{0x88}), raw(http2.FrameHeaders, 5, 1, []byte{0, 1, 'a', 1, 'b'})...))
	f.Add(raw(http2.FrameGoAway, 0, 0, number(1, 0)))
	f.Add(join(raw(http2.FrameHeaders, 0, 1, []byte{0x88}), raw(http2.FrameContinuation, 4, 1, nil), raw(http2.FrameData, http2.FlagPadded|1, 1, []byte{2, 'a', 0, 0})))
	f.Add(raw(http2.FrameSettings, 0, 0, http2.AppendSetting(nil, http2.SettingInitialWindowSize, 0)))
	f.Fuzz(func(t *testing.T, answer []byte) {
		conn, server := meet(t, Settings{BodyIdle: 10 * time.Millisecond})
		done := make(chan struct{})
		go func() {
			defer close(done)
			server.next()
			server.send(answer)
			server.conn.Close()
		}()
		front, _, err := request(t, conn, func(ex *exchange.Exchange) { ex.Limits.RequestTimeout = 50 * time.Millisecond })
		if err == nil && (front.Status < 200 || front.Status > 599) {
			t.Errorf("status %d", front.Status)
		}
		conn.Close()
		<-done
	})
}
