//go:build !linux

package listen

import "net/netip"

// Owner returns the process that listens on an address; on this system it
// cannot be found out.
func Owner(netip.AddrPort) string { return "" }

// PacketsOwner is not known on this system.
func PacketsOwner(netip.AddrPort) string { return "" }
