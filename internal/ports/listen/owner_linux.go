package listen

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Owner returns the process that listens on an address or on one that overlaps
// with it, such as "nginx (pid 812)". It is "" when that cannot be found out,
// for example because the process belongs to another user.
func Owner(address netip.AddrPort) string { return owner(address, listening, "tcp") }

// PacketsOwner is Owner for datagrams.
func PacketsOwner(address netip.AddrPort) string { return owner(address, unconnected, "udp") }

// The states of sockets in the tables of the system.
const (
	listening   = "0A"
	unconnected = "07"
)

// owner finds the process that has a socket in a state.
func owner(address netip.AddrPort, state, transport string) string {
	inodes := map[string]bool{}
	for _, family := range []string{"", "6"} {
		addListeners(inodes, "/proc/net/"+transport+family, state, address)
	}
	if len(inodes) == 0 {
		return ""
	}
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err != nil || !inodes[link] {
			continue
		}
		pid := strings.Split(fd, "/")[2]
		if pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
	}
	return ""
}

// addListeners adds the sockets of one table of the system that listen on an
// address, in the form in which /proc links to them.
func addListeners(inodes map[string]bool, table, state string, address netip.AddrPort) {
	data, err := os.ReadFile(table)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != state {
			continue
		}
		at, ok := parseLocal(f[1])
		if !ok || at.Port() != address.Port() {
			continue
		}
		if a, b := at.Addr(), address.Addr(); a == b || a.IsUnspecified() || b.IsUnspecified() {
			inodes["socket:["+f[9]+"]"] = true
		}
	}
}

// parseLocal reads an address as the tables write it: hexadecimal, in words of
// this machine's byte order.
func parseLocal(s string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || err2 != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}
