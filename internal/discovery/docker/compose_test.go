package docker

import (
	"strings"
	"testing"

	"headgate/internal/config"
)

// TestCompose holds how services of a Compose file are read.
func TestCompose(t *testing.T) {
	for _, tt := range []struct {
		name, services, network, want string
	}{
		{"labels as a list", `{a: {labels: ["headgate.host=a.test", "x"], expose: [80]}}`, "", "proxies p-a: virtual_hosts=a.test -> p-a-1:80"},
		{"labels as a map", `{a: {labels: {headgate.host: a.test, headgate.port: 81, x: null}}}`, "", "proxies p-a: virtual_hosts=a.test -> p-a-1:81"},
		{"a range of ports", `{a: {labels: {headgate.host: a.test}, ports: ["8000-8001:9000-9001"]}}`, "", "proxies p-a: virtual_hosts=a.test -> \nseveral_ports p-a-1 headgate.port"},
		{"another protocol", `{a: {labels: {headgate.udp.d.address: "0.0.0.0:53"}, ports: ["53:53/udp", "80"]}}`, "", "udp_proxies d: address=0.0.0.0:53 -> p-a-1:53"},
		{"several networks", `{a: {labels: {headgate.host: a.test}, expose: [80], networks: [x, y]}}`, "", "proxies p-a: virtual_hosts=a.test -> \nseveral_networks p-a-1 headgate.network"},
		{"a network of the provider", `{a: {labels: {headgate.host: a.test}, expose: [80], networks: [x, y]}}`, "p_y", "proxies p-a: virtual_hosts=a.test -> p-a-1:80"},
		{"headgate is there too", `{a: {labels: {headgate.host: a.test}, expose: [80], networks: [x, y]}, h: {image: "registry.test/headgate:1", networks: [y]}}`, "", "proxies p-a: virtual_hosts=a.test -> p-a-1:80"},
		{"headgate is elsewhere", `{a: {labels: {headgate.host: a.test}, expose: [80]}, h: {image: headgate, networks: [y]}}`, "", "no_shared_network p-a-1\nproxies p-a: virtual_hosts=a.test -> "},
		{"the network of another", `{a: {labels: {headgate.host: a.test, headgate.port: 80}, network_mode: "service:b"}, b: {image: x}}`, "", "proxies p-a: virtual_hosts=a.test -> p-a-1:80"},
		{"the network of the machine", `{a: {labels: {headgate.host: a.test, headgate.port: 80}, network_mode: host}}`, "", "proxies p-a: virtual_hosts=a.test -> p-a-1:80"},
		{"a name", `{a: {labels: {headgate.host: a.test}, expose: [80], container_name: shop}}`, "", "proxies p-a: virtual_hosts=a.test -> shop:80"},
		{"a port that is a variable", `{a: {labels: {headgate.host: a.test}, ports: ["${PORT}:80", "${PORT}"]}}`, "", "bad_value p-a-1\nproxies p-a: virtual_hosts=a.test -> p-a-1:80"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compose("x/compose.yaml", []byte("name: p\nservices: "+tt.services), "local", &config.Docker{Network: tt.network})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range s.Objects {
				for i := range o.Servers {
					_, port, _ := strings.Cut(strings.TrimPrefix(o.Servers[i].Address, "http://"), ":")
					o.Servers[i].Address = o.Servers[i].Container + ":" + port
				}
			}
			if got := story(s); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	for _, bad := range []string{"", "services: {}", "services: [", "- a", "services: {a: 7}", strings.Repeat("#", maxCompose+1)} {
		if _, err := Compose("compose.yaml", []byte(bad), "local", &config.Docker{}); err == nil {
			t.Errorf("%.20q: no error", bad)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %q is no line", bad, err)
		}
	}
}
