package docker

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/schema"
)

// schemes are how a container can be spoken to.
var schemes = []string{"http", "https", "h2c"}

// noNetwork are networks of the engine in which containers cannot be reached.
var noNetwork = []string{"ingress", "docker_gwbridge"}

// finder finds the address of one container for one object. Problems become issues;
// then there is no server.
type finder struct {
	*surroundings
	// network is the provider's, "" if it has none.
	network    string
	containers []*container

	c      *container
	w      *wanted
	issues []discovery.Issue
}

// server returns the container as a server of its object.
func (f *finder) server() (config.DiscoveredServer, bool) {
	port, ok := f.port()
	if !ok {
		return config.DiscoveredServer{}, false
	}
	at, shared, ok := f.address(port)
	if !ok {
		return config.DiscoveredServer{}, false
	}
	s := config.DiscoveredServer{Address: at.String(), Container: f.c.name, Shared: shared, Labels: f.w.server}
	if f.w.kind == "proxies" {
		scheme, base, ok := f.form()
		if !ok {
			return config.DiscoveredServer{}, false
		}
		s.Address = scheme + "://" + s.Address + base
	}
	return s, true
}

// addIssue notes an issue. Label is the one that is meant, or would help; it may be "".
func (f *finder) addIssue(code discovery.Code, label, message, hint string) {
	f.issues = append(f.issues, discovery.Issue{Container: f.c.name, Label: label, Kind: f.w.kind, Name: f.w.name, Code: code, Message: message, Hint: hint})
}

// protocol returns the protocol of the ports that the object wants.
func (f *finder) protocol() string {
	if f.w.kind == "udp_proxies" {
		return "udp"
	}
	return "tcp"
}

// label returns the label that says a word for this object.
func (f *finder) label(word string) string {
	if f.w.form == "" {
		return prefix + word
	}
	return prefix + f.w.form + "." + f.w.name + "." + word
}

// port returns the container's port: the one that a label names, else the one that is
// exposed, else the one that is published. It never guesses.
func (f *finder) port() (uint16, bool) {
	if s := f.w.target.port; s.label != "" {
		n, err := strconv.ParseUint(strings.TrimSpace(s.value), 10, 16)
		if err != nil || n == 0 {
			f.addIssue(discovery.BadValue, s.label, fmt.Sprintf("%s is not a port number", quoted(s.value)), "write the port that the container listens on, such as 8080")
			return 0, false
		}
		return uint16(n), true
	}
	exposed, published := map[uint16]bool{}, map[uint16]bool{}
	for _, p := range networkOf(f.c, f.containers).Ports {
		if p.Type == f.protocol() || p.Type == "" && f.protocol() == "tcp" {
			exposed[p.PrivatePort] = true
			if p.PublicPort != 0 {
				published[p.PrivatePort] = true
			}
		}
	}
	for _, set := range []map[uint16]bool{exposed, published} {
		if len(set) == 1 {
			for n := range set {
				return n, true
			}
		}
	}
	hint := fmt.Sprintf("add the label %s with the port that the container listens on", f.label("port"))
	if len(exposed) == 0 {
		message := "the container exposes no port"
		if f.c.hostNetwork() {
			message = "the container uses the network of its host, for which the engine reports no ports"
		}
		f.addIssue(discovery.NoPort, f.label("port"), message, hint)
		return 0, false
	}
	f.addIssue(discovery.SeveralPorts, f.label("port"), "the container has the ports "+numbers(exposed)+", and no label says which", hint)
	return 0, false
}

// numbers returns ports in words.
func numbers(ports map[uint16]bool) string {
	const shown = 10
	var out []string
	for _, n := range slices.Sorted(maps.Keys(ports)) {
		out = append(out, strconv.Itoa(int(n)))
	}
	if len(out) > shown {
		out = append(out[:shown], fmt.Sprintf("%d more", len(out)-shown))
	}
	return strings.Join(out, ", ")
}

// address returns where a port of the container is reached. Shared is whether that is
// an address at which headgate could listen itself.
func (f *finder) address(port uint16) (at netip.AddrPort, shared, ok bool) {
	owner := networkOf(f.c, f.containers)
	switch {
	case strings.HasPrefix(owner.HostConfig.NetworkMode, "container:"):
		f.addIssue(discovery.NoNetwork, "", "the container is in the network of another one that does not run", "start the other container")
		return at, false, false
	case owner.hostNetwork():
		return f.onMachine(port)
	case f.elsewhere:
		return f.atPublished(owner, port)
	}
	a, ok := f.attachment(owner)
	if !ok {
		return at, false, false
	}
	if ip := a.address(); ip.IsValid() {
		return netip.AddrPortFrom(ip, port), f.self != nil && f.isSelf(ip), true
	}
	return f.atPublished(owner, port)
}

// isSelf reports whether an address is one of headgate's own container.
func (f *finder) isSelf(ip netip.Addr) bool {
	for _, a := range f.networks {
		if a.address() == ip {
			return true
		}
	}
	return false
}

// onMachine returns the port at the engine's machine, for a container in its network.
// A port that another container has published there is that one's.
func (f *finder) onMachine(port uint16) (netip.AddrPort, bool, bool) {
	if other := f.published[publishedPort{f.protocol(), port}]; other != nil && other != f.c {
		f.addIssue(discovery.Conflict, f.w.target.port.label, fmt.Sprintf("the port %d of the machine is published by the container %s", port, other.name), "write the port that this container listens on")
		return netip.AddrPort{}, false, false
	}
	if !f.machine.IsValid() {
		f.addIssue(discovery.NoNetwork, "", "the container is in the network of its machine, whose address is not known here", "put headgate's container into a network with a gateway, or into the network of the machine too")
		return netip.AddrPort{}, false, false
	}
	return netip.AddrPortFrom(f.machine, port), !f.remote, true
}

// attachment returns the container's place in the network at which it is reached: the
// one that is named, else the one that is shared with headgate, else the only one.
func (f *finder) attachment(owner *container) (*attachment, bool) {
	all := owner.NetworkSettings.Networks
	named, by := f.w.target.network.value, f.w.target.network.label
	if by == "" {
		named, by = f.network, ""
	}
	if named != "" {
		return f.named(owner, named, by)
	}
	var usable, common []string
	for _, name := range sortedKeys(all) {
		if !all[name].address().IsValid() || slices.Contains(noNetwork, name) {
			continue
		}
		usable = append(usable, name)
		if f.networks[name] != nil {
			common = append(common, name)
		}
	}
	hint := fmt.Sprintf("add the label %s with one of them, or set network for the provider", f.label("network"))
	switch {
	case len(common) == 1:
		return all[common[0]], true
	case len(common) > 1:
		f.addIssue(discovery.SeveralNetworks, f.label("network"), "the container shares the networks "+strings.Join(common, ", ")+" with headgate, and no label says which", hint)
		return nil, false
	case f.networks != nil && len(usable) > 0:
		f.addIssue(discovery.NoNetwork, "", fmt.Sprintf("the container is in %s, and headgate's own container is in %s", words(usable), words(sortedKeys(f.networks))), "put both into one network")
		return nil, false
	case len(usable) == 1:
		return all[usable[0]], true
	case len(usable) > 1:
		f.addIssue(discovery.SeveralNetworks, f.label("network"), "the container is in the networks "+strings.Join(usable, ", ")+", and no label says which", hint)
		return nil, false
	}
	return nil, true // none has an address, as without root
}

// named returns the container's place in a network that was named by a label, or by
// the provider if that is "".
func (f *finder) named(owner *container, name, label string) (*attachment, bool) {
	all := owner.NetworkSettings.Networks
	if all[name] == nil && owner.Labels[composeProject] != "" {
		if full := owner.Labels[composeProject] + "_" + name; all[full] != nil {
			name = full // as the Compose file calls it
		}
	}
	if a := all[name]; a.address().IsValid() {
		if f.networks != nil && f.networks[name] == nil {
			f.addIssue(discovery.NoNetwork, label, fmt.Sprintf("headgate's own container is not in the network %s", oneLine(name)), "put it there too")
		}
		return a, true
	}
	message, hint := fmt.Sprintf("the container has no address in the network %s", quoted(name)), "put it there, or name another network"
	if known := sortedKeys(all); len(known) > 0 {
		message += "; it is in " + words(known)
		if near := schema.Nearest(name, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
	}
	f.addIssue(discovery.NoNetwork, label, message, hint)
	return nil, false
}

// atPublished returns the address at which a port of the container is published.
func (f *finder) atPublished(owner *container, port uint16) (netip.AddrPort, bool, bool) {
	for _, p := range owner.Ports {
		if p.PrivatePort != port || p.PublicPort == 0 || p.Type != f.protocol() {
			continue
		}
		ip, err := netip.ParseAddr(p.IP)
		if err != nil || ip.IsUnspecified() || ip.IsLoopback() && !f.isolated && !f.remote {
			ip = f.machine
		} else if ip.IsLoopback() {
			continue // of another machine
		}
		if ip.IsValid() {
			return netip.AddrPortFrom(ip, p.PublicPort), !f.remote, true
		}
	}
	message := fmt.Sprintf("the container has no address that can be reached from here, and its port %d is not published", port)
	f.addIssue(discovery.NoNetwork, "", message, fmt.Sprintf("publish the port (ports: [\"%d\"]), or put headgate into a network of the container", port))
	return netip.AddrPort{}, false, false
}

// form returns scheme and base path of the server's URL.
func (f *finder) form() (scheme, base string, ok bool) {
	scheme = "http"
	if s := f.w.target.scheme; s.label != "" {
		scheme = strings.ToLower(strings.TrimSpace(s.value))
		if !slices.Contains(schemes, scheme) {
			f.addIssue(discovery.BadValue, s.label, fmt.Sprintf("unknown value %s", quoted(s.value)), "write http, https or h2c")
			return "", "", false
		}
	}
	if s := f.w.target.basePath; s.label != "" {
		if what, remedy := schema.CheckPath(s.value); what != "" {
			f.addIssue(discovery.BadValue, s.label, what, remedy)
			return "", "", false
		}
		base = s.value
	}
	return scheme, base, true
}

// words returns names in words.
func words(names []string) string {
	if len(names) == 0 {
		return "no network"
	}
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = oneLine(n)
	}
	if len(list) == 1 {
		return "the network " + list[0]
	}
	return "the networks " + strings.Join(list, ", ")
}

// sortedKeys returns the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
