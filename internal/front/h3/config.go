package h3

import (
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/front/clients"
)

// The QUIC settings. A client that drains is probed with keep-alives, so that neither a NAT
// nor a time-out ends a slow request; one that does not respond has disconnected.
const (
	handshakeIdle = 5 * time.Second // a whole handshake may take twice that
	quicSilence   = 60 * time.Second
	quicKeepAlive = 20 * time.Second
)

// How much unread data a client may have, in bytes, as over HTTP/2. The first window is
// part of the memory of its first request; beyond that, the window of a connection is
// counted for its client. It grows within a few round trips if a body arrives fast.
const (
	quicFirstWindow  = clients.RequestMemory
	quicStreamWindow = 1 << 20
	quicConnWindow   = 2 << 20
)

// Config returns how QUIC is spoken on the front's port. The config is the caller's.
func (f *Front) Config() *quic.Config {
	port := f.Port()
	f.bound.note(int64(port.Streams))
	return &quic.Config{
		AllowConnectionWindowIncrease:  func(qc *quic.Conn, n uint64) bool { return f.allow(qc, int64(n)) },
		HandshakeIdleTimeout:           handshakeIdle,
		MaxIdleTimeout:                 quicSilence,
		KeepAlivePeriod:                quicKeepAlive,
		MaxIncomingStreams:             int64(port.Streams),
		MaxIncomingUniStreams:          controlStreams,
		RequireStreamCreditRelease:     true,
		InitialStreamReceiveWindow:     quicFirstWindow,
		MaxStreamReceiveWindow:         quicStreamWindow,
		InitialConnectionReceiveWindow: quicFirstWindow,
		MaxConnectionReceiveWindow:     quicConnWindow,
	}
}
