package docker

import (
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// here is what this process knows about where it runs.
type here struct {
	// contained is whether it runs in a container.
	contained bool
	// ids are candidates for its container id, the most reliable first: complete ones, or
	// the twelve digits of the default host name of a container.
	ids []string
	// reaches is whether addresses of containers can be reached from the machine that
	// the engine runs on, as on Linux; elsewhere the engine runs in a machine of its
	// own, and only published ports can.
	reaches bool
}

// containerID is how the id of a container looks in paths.
var containerID = regexp.MustCompile(`[/-]([0-9a-f]{64})(?:[/.\s]|$)`)

// shortID is how a host name looks that the engine made.
var shortID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// detectHost finds out where this process runs.
func detectHost() here {
	h := here{reaches: runtime.GOOS == "linux"}
	for _, file := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(file); err == nil {
			h.contained = true
		}
	}
	if !h.contained {
		return h
	}
	for _, file := range []string{"/proc/self/cgroup", "/proc/self/mountinfo"} {
		if data, err := os.ReadFile(file); err == nil {
			h.ids = append(h.ids, idsIn(string(data))...)
		}
	}
	if name, err := os.Hostname(); err == nil && shortID.MatchString(name) {
		h.ids = append(h.ids, name)
	}
	return h
}

// idsIn returns the ids of containers in a file of /proc: of paths like
// /docker/containers/ID/hostname, which the engine mounts, and of control groups.
func idsIn(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "/overlay") && !strings.Contains(line, "containers/") {
			continue // layers of images have ids too
		}
		for _, m := range containerID.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(out, m[1]) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// surroundings are how containers of one listing are reached from here.
type surroundings struct {
	// self is the container that headgate runs in, nil if it runs in none of these.
	self *container
	// isolated is whether headgate has a network of its own, so that 127.0.0.1 is not
	// the engine's machine.
	isolated bool
	// networks are those that headgate's container is in, nil if that is not known.
	networks map[string]*attachment
	// machine is the address of the engine's machine from here: 127.0.0.1, the gateway
	// of headgate's container, or a machine elsewhere. It is invalid if none is known.
	machine netip.Addr
	// remote is whether the engine is on another machine. Elsewhere is whether it is on
	// another machine or in one of its own on this: its containers are reached only at
	// published ports.
	remote, elsewhere bool
	// published are the ports of the engine's machine that are published, by protocol
	// and number, with whose they are.
	published map[publishedPort]*container
}

// publishedPort is a port of the engine's machine.
type publishedPort struct {
	protocol string
	port     uint16
}

// around finds out how the containers are reached. Peer is the address of the engine,
// invalid for a socket.
func (h here) around(containers []*container, peer netip.Addr) *surroundings {
	s := &surroundings{published: map[publishedPort]*container{}}
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.PublicPort != 0 && everywhere(p.IP) {
				s.published[publishedPort{p.Type, p.PublicPort}] = c
			}
		}
	}
	s.self = h.self(containers)
	proxy := attachedAt(containers, peer)
	switch {
	case s.self != nil && !s.self.hostNetwork():
		s.isolated, s.networks = true, networkOf(s.self, containers).NetworkSettings.Networks
	case s.self == nil && h.contained && proxy != nil:
		// A socket proxy is among the containers, and is reached: its networks are ours.
		s.isolated, s.networks = true, proxy.NetworkSettings.Networks
	}
	// A container that this engine does not know is the machine that the engine runs on.
	s.remote = peer.IsValid() && !peer.IsLoopback() && s.self == nil && proxy == nil
	s.elsewhere = s.remote || !h.reaches && !h.contained
	switch {
	case s.remote:
		s.machine = peer
	case !s.isolated:
		s.machine = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	default:
		s.machine = gateway(s.networks)
	}
	return s
}

// everywhere reports whether a port that is published at an address can be reached at
// 127.0.0.1 of the machine, or at its gateway.
func everywhere(ip string) bool {
	a, err := netip.ParseAddr(ip)
	return err != nil || a.IsUnspecified() || a.IsLoopback()
}

// self returns the container that this process runs in, or nil.
func (h here) self(containers []*container) *container {
	for _, id := range h.ids {
		for _, c := range containers {
			if strings.HasPrefix(c.ID, id) {
				return c
			}
		}
	}
	return nil
}

// attachedAt returns the container with an address, or nil.
func attachedAt(containers []*container, ip netip.Addr) *container {
	if !ip.IsValid() {
		return nil
	}
	for _, c := range containers {
		for _, a := range c.NetworkSettings.Networks {
			if a.address() == ip {
				return c
			}
		}
	}
	return nil
}

// gateway returns the address of the machine in one of our networks.
func gateway(networks map[string]*attachment) netip.Addr {
	for _, name := range sortedKeys(networks) {
		if a := networks[name]; a != nil {
			if ip, err := netip.ParseAddr(a.Gateway); err == nil {
				return ip
			}
		}
	}
	return netip.Addr{}
}

// hostNetwork reports whether the container is in the network of its machine.
func (c *container) hostNetwork() bool { return c.HostConfig.NetworkMode == "host" }

// networkOf returns the container whose network c is in, which is c itself unless it
// was started in the network of another.
func networkOf(c *container, containers []*container) *container {
	id, ok := strings.CutPrefix(c.HostConfig.NetworkMode, "container:")
	if !ok || id == "" {
		return c
	}
	for _, other := range containers {
		if other != c && (strings.HasPrefix(other.ID, id) || other.name == id) {
			return other
		}
	}
	return c
}
