package docker

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/config"
)

// TestAddresses holds where containers are reached, in every place where headgate and
// the engine may be.
func TestAddresses(t *testing.T) {
	own := strings.Repeat("0", 63) + "f"
	host := here{reaches: true}
	inside := here{reaches: true, contained: true, ids: []string{own}}
	unknown := here{reaches: true, contained: true}
	elsewhere := here{}
	remote := netip.MustParseAddr("192.0.2.7")

	c := func(networks ...string) *container {
		c := &container{ID: "app", Names: []string{"/app"}, State: "running", Labels: map[string]string{"headgate.host": "a.example"}}
		c.Ports = []portMapping{{PrivatePort: 80, Type: "tcp"}}
		c.NetworkSettings.Networks = map[string]*attachment{}
		for _, n := range networks {
			name, ip, _ := strings.Cut(n, "=")
			c.HostConfig.NetworkMode = name
			c.NetworkSettings.Networks[name] = &attachment{IPAddress: ip, Gateway: "172.30.0.1"}
		}
		return c
	}
	with := func(c *container, change func(c *container)) *container { change(c); return c }
	self := func(networks ...string) *container {
		return with(c(networks...), func(c *container) { c.ID, c.Names, c.Labels = own, []string{"/headgate"}, nil })
	}
	label := func(key, value string) func(*container) {
		return func(c *container) { c.Labels[key] = value }
	}
	ports := func(p ...portMapping) func(*container) { return func(c *container) { c.Ports = p } }
	mode := func(m string) func(*container) { return func(c *container) { c.HostConfig.NetworkMode = m } }
	tcp := func(private, public uint16, ip string) portMapping {
		return portMapping{PrivatePort: private, PublicPort: public, IP: ip, Type: "tcp"}
	}

	for _, tt := range []struct {
		name    string
		here    here
		peer    netip.Addr
		network string
		app     *container
		others  []*container
		want    string // the address, * behind one that is shared; or the code of the issue
	}{
		{"the only network", host, netip.Addr{}, "", c("a=172.18.0.2"), nil, "172.18.0.2:80"},
		{"IPv6 alone", host, netip.Addr{}, "", with(c("a="), func(c *container) { c.NetworkSettings.Networks["a"].GlobalIPv6Address = "fd00::2" }), nil, "[fd00::2]:80"},
		{"several networks", host, netip.Addr{}, "", c("a=172.18.0.2", "b=172.19.0.2"), nil, "several_networks"},
		{"ingress does not count", host, netip.Addr{}, "", c("a=172.18.0.2", "ingress=10.0.0.3"), nil, "172.18.0.2:80"},
		{"named by label", host, netip.Addr{}, "", with(c("a=172.18.0.2", "b=172.19.0.2"), label("headgate.network", "b")), nil, "172.19.0.2:80"},
		{"named by the provider", host, netip.Addr{}, "b", c("a=172.18.0.2", "b=172.19.0.2"), nil, "172.19.0.2:80"},
		{"the label before the provider", host, netip.Addr{}, "b", with(c("a=172.18.0.2", "b=172.19.0.2"), label("headgate.network", "a")), nil, "172.18.0.2:80"},
		{"as Compose calls it", host, netip.Addr{}, "", with(with(c("shop_back=172.18.0.2", "b=172.19.0.2"), label("headgate.network", "back")), label(composeProject, "shop")), nil, "172.18.0.2:80"},
		{"named and not there", host, netip.Addr{}, "", with(c("a=172.18.0.2"), label("headgate.network", "b")), nil, "no_shared_network"},
		{"shared with us", inside, netip.Addr{}, "", c("a=172.18.0.2", "b=172.19.0.2"), []*container{self("b=172.19.0.9", "c=172.20.0.9")}, "172.19.0.2:80"},
		{"two shared with us", inside, netip.Addr{}, "", c("a=172.18.0.2", "b=172.19.0.2"), []*container{self("a=172.18.0.9", "b=172.19.0.9")}, "several_networks"},
		{"none shared with us", inside, netip.Addr{}, "", c("a=172.18.0.2"), []*container{self("b=172.19.0.9")}, "no_shared_network"},
		{"named, and we are not there", inside, netip.Addr{}, "", with(c("a=172.18.0.2"), label("headgate.network", "a")), []*container{self("b=172.19.0.9")}, "172.18.0.2:80 no_shared_network"},
		{"our container is in the network of the machine", inside, netip.Addr{}, "", c("a=172.18.0.2"), []*container{with(self("host="), mode("host"))}, "172.18.0.2:80"},
		{"our container is not known", unknown, netip.Addr{}, "", c("a=172.18.0.2"), nil, "172.18.0.2:80"},
		{"we know ourselves by the socket proxy", unknown, netip.MustParseAddr("172.19.0.8"), "", c("a=172.18.0.2", "b=172.19.0.2"), []*container{with(self("b=172.19.0.8"), func(c *container) { c.ID = "proxy" })}, "172.19.0.2:80"},

		{"network of the machine", host, netip.Addr{}, "", with(c("host="), label("headgate.port", "8080")), nil, "127.0.0.1:8080*"},
		{"network of the machine, by label only", host, netip.Addr{}, "", with(c("host="), ports()), nil, "no_port"},
		{"network of the machine, from a container", inside, netip.Addr{}, "", with(c("host="), label("headgate.port", "8080")), []*container{self("b=172.19.0.9")}, "172.30.0.1:8080*"},
		{"network of the machine, in a container of another engine", unknown, netip.Addr{}, "", with(c("host="), label("headgate.port", "8080")), nil, "127.0.0.1:8080*"},
		{"network of the machine, no address of it", inside, netip.Addr{}, "", with(c("host="), label("headgate.port", "8080")), []*container{with(self("b=172.19.0.9"), func(c *container) { c.NetworkSettings.Networks["b"].Gateway = "" })}, "no_shared_network"},
		{"a port that another has published", host, netip.Addr{}, "", with(c("host="), label("headgate.port", "5432")), []*container{with(with(c("b=172.19.0.2"), func(c *container) { c.ID, c.Labels = "db", nil }), ports(tcp(5432, 5432, "0.0.0.0")))}, "conflict"},
		{"in the network of another", host, netip.Addr{}, "", with(c(), mode("container:vpn")), []*container{with(c("b=172.19.0.2"), func(c *container) { c.ID, c.Labels = "vpn", nil })}, "172.19.0.2:80"},
		{"in the network of one that is gone", host, netip.Addr{}, "", with(c(), mode("container:vpn")), nil, "no_shared_network"},
		{"ourselves, by another's network", inside, netip.Addr{}, "", with(with(c(), mode("container:"+own)), label("headgate.port", "9080")), []*container{self("b=172.19.0.9")}, "172.19.0.9:9080*"},
		{"our own container", inside, netip.Addr{}, "", c("b=172.19.0.2"), []*container{with(self("b=172.19.0.9"), func(c *container) { c.Labels = map[string]string{"headgate.host": "a.example"} })}, "172.19.0.2:80 own_socket"},

		{"no address, published", host, netip.Addr{}, "", with(c("slirp4netns="), ports(tcp(80, 8080, ""))), nil, "127.0.0.1:8080*"},
		{"no address, published at one", host, netip.Addr{}, "", with(c("pasta="), ports(tcp(80, 8080, "192.0.2.9"))), nil, "192.0.2.9:8080*"},
		{"no address, not published", host, netip.Addr{}, "", c("slirp4netns="), nil, "no_shared_network"},
		{"no network", host, netip.Addr{}, "", with(c(), mode("none")), nil, "no_shared_network"},
		{"another machine", host, remote, "", with(c("a=172.18.0.2"), ports(tcp(80, 8080, "0.0.0.0"), tcp(80, 8080, "::"))), nil, "192.0.2.7:8080"},
		{"another machine, not published", host, remote, "", c("a=172.18.0.2"), nil, "no_shared_network"},
		{"another machine, published to itself", host, remote, "", with(c("a=172.18.0.2"), ports(tcp(80, 8080, "127.0.0.1"))), nil, "no_shared_network"},
		{"another machine, its network", host, remote, "", with(c("host="), label("headgate.port", "8080")), nil, "192.0.2.7:8080"},
		{"a machine within the machine", elsewhere, netip.Addr{}, "", with(c("a=172.18.0.2"), ports(tcp(80, 8080, "0.0.0.0"))), nil, "127.0.0.1:8080*"},

		{"the one that is exposed", host, netip.Addr{}, "", with(c("a=172.18.0.2"), ports(tcp(3000, 0, ""))), nil, "172.18.0.2:3000"},
		{"the one that is published", host, netip.Addr{}, "", with(c("a=172.18.0.2"), ports(tcp(3000, 0, ""), tcp(80, 8080, "0.0.0.0"))), nil, "172.18.0.2:80"},
		{"several", host, netip.Addr{}, "", with(c("a=172.18.0.2"), ports(tcp(3000, 0, ""), tcp(80, 0, ""))), nil, "several_ports"},
		{"of another protocol", host, netip.Addr{}, "", with(c("a=172.18.0.2"), ports(portMapping{PrivatePort: 53, Type: "udp"})), nil, "no_port"},
		{"none", host, netip.Addr{}, "", with(c("a=172.18.0.2"), ports()), nil, "no_port"},
		{"an address that is none", host, netip.Addr{}, "", c("a=0.0.0.0"), nil, "no_shared_network"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &listing{containers: append(slices.Clone(tt.others), tt.app)}
			for _, c := range l.containers {
				c.setName()
			}
			out := newWorld("local", &config.Docker{Network: tt.network}, tt.here).update(l, tt.peer, time.Now())
			var got []string
			for _, o := range out.objects {
				for _, s := range o.Servers {
					text := strings.TrimPrefix(s.Address, "http://")
					if s.Shared {
						text += "*"
					}
					got = append(got, text)
				}
			}
			for _, i := range out.issues {
				got = append(got, string(i.Code))
				if i.Message == "" || i.Hint == "" {
					t.Errorf("an issue without words: %+v", i)
				}
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %s, want %s; %s", text, tt.want, fmt.Sprint(out.issues))
			}
		})
	}
}

// TestOurOwnContainer holds where the id of our own container is found.
func TestOurOwnContainer(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	layer := strings.Repeat("fedcba9876543210", 4)
	for name, text := range map[string]string{
		"cgroup v1":         "12:memory:/docker/" + id + "\n",
		"cgroup v1 systemd": "1:name=systemd:/system.slice/docker-" + id + ".scope\n",
		"mountinfo":         "1 2 0:1 /var/lib/docker/containers/" + id + "/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n3 4 0:2 / / rw - overlay overlay rw,upperdir=/var/lib/docker/overlay2/" + layer + "/diff\n",
		"podman":            "1 2 0:1 /containers/overlay-containers/" + id + "/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n",
	} {
		if got := idsIn(text); !slices.Equal(got, []string{id}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := idsIn("0::/\n"); got != nil {
		t.Errorf("%q", got)
	}
}
