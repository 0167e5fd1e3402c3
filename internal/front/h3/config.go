package h3

import (
	"time"

	"github.com/quic-go/quic-go"
)

// How QUIC is spoken. A client that was told to keep the connection is asked for a
// sign of life, so that neither an address translator nor a time-out ends a request
// that takes its time; one that gives none is gone.
const (
	handshakeIdle = 5 * time.Second // all of a handshake may take twice that
	quicSilence   = 60 * time.Second
	quicKeepAlive = 20 * time.Second
)

// What a client may have in memory here, in bytes, as over HTTP/2. What a connection
// gets beyond its first window is counted for its client.
const (
	quicStreamWindow = 1 << 20
	quicConnWindow   = 2 << 20
)

// Config returns how QUIC is spoken on the front's port. The config is the caller's.
func (f *Front) Config() *quic.Config {
	port := f.Port()
	return &quic.Config{
		AllowConnectionWindowIncrease:  func(qc *quic.Conn, n uint64) bool { return f.allow(qc, int64(n)) },
		HandshakeIdleTimeout:           handshakeIdle,
		MaxIdleTimeout:                 quicSilence,
		KeepAlivePeriod:                quicKeepAlive,
		MaxIncomingStreams:             int64(port.Streams),
		MaxIncomingUniStreams:          controlStreams,
		RequireStreamCreditRelease:     true,
		InitialStreamReceiveWindow:     quicStreamWindow / 4,
		MaxStreamReceiveWindow:         quicStreamWindow,
		InitialConnectionReceiveWindow: quicConnWindow / 8,
		MaxConnectionReceiveWindow:     quicConnWindow,
	}
}
