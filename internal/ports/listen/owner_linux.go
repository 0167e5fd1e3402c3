package listen

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Owner returns the process that listens on an address or on one that overlaps with
// it, such as "nginx (pid 812)", or, since the system shows the processes of other
// users to root only, "a process of user www-data". It is "" when that cannot be
// found out.
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
	inodes := map[string]string{}
	for _, family := range []string{"", "6"} {
		addListeners(inodes, "/proc/net/"+transport+family, state, address)
	}
	if len(inodes) == 0 {
		return ""
	}
	if name := process(inodes); name != "" {
		return name
	}
	return userOf(inodes)
}

// userOf returns whose process has one of the sockets.
func userOf(inodes map[string]string) string {
	for _, uid := range slices.Sorted(maps.Values(inodes)) {
		if name := userName(uid); name != "" {
			return "a process of " + name
		}
	}
	return ""
}

// userName names a user by its number.
func userName(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return "user " + u.Username
	}
	if uid == "" {
		return ""
	}
	return "the user with number " + uid
}

// process returns a process that has one of the sockets open and whose files are
// visible. Sockets of this process are removed from inodes.
func process(inodes map[string]string) string {
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if _, ok := inodes[link]; err != nil || !ok {
			continue
		}
		pid := strings.Split(fd, "/")[2]
		if pid == strconv.Itoa(os.Getpid()) {
			delete(inodes, link)
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
// address, in the form in which /proc links to them, each with the number of its
// user.
func addListeners(inodes map[string]string, table, state string, address netip.AddrPort) {
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
			inodes["socket:["+f[9]+"]"] = f[7]
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
