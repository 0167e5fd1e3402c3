package plan

import (
	"net"
	"net/netip"
	"time"

	"headgate/internal/config"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
)

// announcers are the peers that begin connections with a PROXY header.
type announcers struct {
	trusted *ipset.Set
	timeout time.Duration
}

// newAnnouncers compiles the settings, which may be nil.
func newAnnouncers(settings *config.ProxyProtocol, at schema.Place) *announcers {
	if settings == nil {
		return nil
	}
	trusted, err := ipset.New(settings.Trusted)
	if err != nil {
		at.Field("trusted").Problem(err.Error(), "")
		return nil
	}
	return &announcers{trusted, settings.Timeout.D()}
}

// within returns how long the header of a peer may take, 0 if the peer sends none.
func (a *announcers) within(peer net.Addr) time.Duration {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return 0
	}
	if addr, _ := netip.AddrFromSlice(tcp.IP); !a.trusted.Contains(addr) {
		return 0
	}
	return a.timeout
}

// Announced returns how long the peer of a new connection may take for the PROXY
// header that its connections begin with; 0 for one that sends none.
func (p *Port) Announced(nc net.Conn) time.Duration {
	if p.announcers == nil {
		return 0
	}
	return p.announcers.within(nc.RemoteAddr())
}
