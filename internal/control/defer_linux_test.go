package control

import (
	"net/netip"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"headgate/internal/testhouse"
)

// defers reports whether our socket that listens on an address keeps back clients that
// have said nothing.
func defers(t *testing.T, address string) bool {
	t.Helper()
	want := netip.MustParseAddrPort(address)
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, f := range all {
		fd, _ := strconv.Atoi(f.Name())
		at, _ := unix.Getsockname(fd)
		if four, ok := at.(*unix.SockaddrInet4); !ok || netip.AddrPortFrom(netip.AddrFrom4(four.Addr), uint16(four.Port)) != want {
			continue
		}
		if listens, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); listens == 0 {
			continue
		}
		seconds, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT)
		if err != nil {
			t.Skip(err)
		}
		return seconds > 0
	}
	t.Fatalf("no port or TCP proxy listens on %s", address)
	return false
}

// On a port of HTTP the client begins; behind a TCP proxy the server may. A socket that
// is kept follows.
func TestSilentClientsAreKeptBackWhereClientsBegin(t *testing.T) {
	address, server := testhouse.Address(t), testhouse.Address(t)
	relay := "version: 1\nadmin: {address: \"\"}\ntcp_proxies:\n  relay: {address: \"" + address + "\", servers: [{address: \"" + server + "\"}]}\n"
	h := start(t, document(200, "web "+address))
	if !defers(t, address) {
		t.Error("a port of HTTP takes silent clients at once")
	}
	h.apply(relay)
	if defers(t, address) {
		t.Error("a TCP proxy keeps back clients that wait for its server to begin")
	}
	h.apply(document(200, "web "+address))
	if !defers(t, address) {
		t.Error("a port of HTTP in the place of a TCP proxy takes silent clients at once")
	}
}
