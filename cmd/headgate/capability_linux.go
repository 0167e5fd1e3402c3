package main

import (
	le "encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// capabilityProblem returns why the binary now on disk could not open the ports that this
// process can, "" for no reason. The new process has the ambient capabilities of this one
// (systemd gives such ones). A capability that came from the file of the binary, by setcap,
// is lost when the file is replaced.
func capabilityProblem(program string) string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || os.Geteuid() == 0 {
		return "" // root has all of them
	}
	const bind = 1 << unix.CAP_NET_BIND_SERVICE
	if capabilities(string(status), "CapEff")&bind == 0 || capabilities(string(status), "CapAmb")&bind != 0 {
		return ""
	}
	b := make([]byte, 64)
	n, err := unix.Getxattr(program, "security.capability", b)
	if err == nil && fileCapabilities(b[:n])&bind != 0 {
		return ""
	}
	return fmt.Sprintf("%s lacks CAP_NET_BIND_SERVICE, which the running binary has from its file: setcap cap_net_bind_service=+ep %s", program, program)
}

// capabilities returns a set of capabilities in /proc/PID/status, 0 if it is not there.
func capabilities(status, name string) uint64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			if err != nil {
				return 0
			}
			return set
		}
	}
	return 0
}

// fileCapabilities returns the low 32 capabilities that a program gets from its file, as the
// attribute security.capability has them (struct vfs_cap_data of linux/capability.h); 0 if
// they do not become effective by themselves.
func fileCapabilities(attribute []byte) uint32 {
	const effective = 1
	if len(attribute) < 8 || le.LittleEndian.Uint32(attribute)&effective == 0 {
		return 0
	}
	return le.LittleEndian.Uint32(attribute[4:])
}
