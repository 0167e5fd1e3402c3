package h3

import (
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/exchange"
)

// How QUIC is spoken. A client that was told to keep the connection is asked for a
// sign of life, so that neither an address translator nor a time-out ends a request
// that takes its time; one that gives none is gone.
const (
	handshakeIdle = 5 * time.Second // all of a handshake may take twice that
	quicSilence   = 60 * time.Second
	quicKeepAlive = 20 * time.Second
)

// What a client may have in memory here, in bytes, as over HTTP/2.
const (
	quicStreamWindow = 1 << 20
	quicConnWindow   = 2 << 20
)

// Config returns how QUIC is spoken on a port. The config is the caller's.
func Config(port *exchange.Port) *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:           handshakeIdle,
		MaxIdleTimeout:                 quicSilence,
		KeepAlivePeriod:                quicKeepAlive,
		MaxIncomingStreams:             int64(port.Streams),
		MaxIncomingUniStreams:          controlStreams,
		RequireStreamCreditRelease:     true,
		InitialStreamReceiveWindow:     quicStreamWindow / 4,
		MaxStreamReceiveWindow:         quicStreamWindow,
		InitialConnectionReceiveWindow: quicConnWindow / 4,
		MaxConnectionReceiveWindow:     quicConnWindow,
	}
}
