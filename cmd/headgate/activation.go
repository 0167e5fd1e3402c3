package main

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"
)

// adminSocket is the name of the socket of the admin listener in socket activation.
const adminSocket = "admin"

// activated are the sockets that the service manager has passed (sd_listen_fds(3)), by the
// name of the port that they are for: FileDescriptorName of systemd. A nil *activated has
// none. Its methods may be called by several goroutines at once.
type activated struct {
	log *slog.Logger
	mu  sync.Mutex
	all []passed // guarded by mu
}

// passed is one of the sockets: where it is bound, such as tcp/0.0.0.0:80.
type passed struct {
	*os.File
	at string
}

// socketsPassed returns the sockets that the service manager has passed to this process, nil
// for none. The variables are removed from the environment.
func socketsPassed(log *slog.Logger) *activated {
	files := activation.Files(true)
	if len(files) == 0 {
		return nil
	}
	a := &activated{log: log}
	for _, f := range files {
		at := boundTo(f)
		if at == "" {
			log.Warn("the service manager has passed a descriptor that is neither a TCP listener nor a UDP socket; it is not used", "name", f.Name())
			f.Close()
			continue
		}
		a.all = append(a.all, passed{f, at})
	}
	return a
}

// boundTo returns where a socket is bound, as ports name sockets; "" for what is no
// listener of TCP and no socket of UDP.
func boundTo(f *os.File) string {
	if l, err := net.FileListener(f); err == nil {
		defer l.Close()
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			return "tcp/" + unmapped(a.AddrPort())
		}
		return ""
	}
	c, err := net.FilePacketConn(f)
	if err != nil {
		return ""
	}
	defer c.Close()
	if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
		return "udp/" + unmapped(a.AddrPort())
	}
	return ""
}

func unmapped(a netip.AddrPort) string {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
}

// TakeSocket returns the socket that was passed for a port, once; nil if there is none. The
// socket must be bound to the address of the port: at is tcp/ or udp/ and the address.
func (a *activated) TakeSocket(port, at string) *os.File {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.all, func(p passed) bool { return p.Name() == port && p.at == at })
	if i < 0 {
		return nil
	}
	f := a.all[i].File
	a.all = slices.Delete(a.all, i, i+1)
	return f
}

// closeUnused closes the sockets that no port has, and logs why.
func (a *activated) closeUnused() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.all {
		a.log.Warn("a socket of the service manager is not used", "name", p.Name(), "bound_to", p.at,
			"remedy", "set FileDescriptorName= to the name of a port, TCP proxy or UDP proxy (or admin), and its address to that of the socket")
		p.Close()
	}
	a.all = nil
}
