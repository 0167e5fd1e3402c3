package interop

import (
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// The gRPC health checking protocol, with the server that gRPC itself brings: the
// state of a service is found out, and that of one which is not known.
func TestGRPCHealth(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, states := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(server, states)
	states.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
	go server.Serve(l)
	t.Cleanup(server.Stop)

	admin := free(t)
	const proxy = "  %s: {virtual_hosts: [%s.test], routes: [{health_check: {type: grpc, service: %q, interval: 200ms, unhealthy_interval: 100ms}, servers: [{url: \"h2c://%s\"}]}]}\n"
	config := fmt.Sprintf("version: 1\nadmin: {address: %q}\naccess_log: {enabled: false}\nports: {web: {address: %q, protocol: http}}\nproxies:\n", admin, free(t))
	for name, service := range map[string]string{"whole": "", "shop": "shop", "other": "nobody"} {
		config += fmt.Sprintf(proxy, name, name, service, l.Addr())
	}
	g := start(t, config)
	await := func(proxy, state, fault string) {
		t.Helper()
		var last string
		for begun := time.Now(); time.Since(begun) < 20*time.Second; <-time.After(20 * time.Millisecond) {
			s := serverState(t, g, proxy)
			if last = s.State + " " + s.LastError; s.State == state && (fault == "" || s.LastError == fault) {
				return
			}
		}
		t.Fatalf("proxy %s: server is %s, want %s %s", proxy, last, state, fault)
	}
	await("whole", "healthy", "")
	await("shop", "healthy", "")
	await("other", "unhealthy", `the server does not know the service "nobody"`)
	states.SetServingStatus("shop", healthpb.HealthCheckResponse_NOT_SERVING)
	await("shop", "unhealthy", "the service is NOT_SERVING")
	await("whole", "healthy", "")
	states.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
	await("shop", "healthy", "")
}

// server is how /status tells of a server.
type server struct {
	State     string `json:"state"`
	LastError string `json:"last_error"`
}

// serverState returns how the only server of a proxy stands.
func serverState(t *testing.T, g *gate, proxy string) server {
	t.Helper()
	var page struct {
		Proxies []struct {
			Routes []struct {
				Servers []server `json:"servers"`
			} `json:"routes"`
		} `json:"proxies"`
	}
	if err := g.status("?proxy="+proxy, &page); err != nil || len(page.Proxies) != 1 {
		t.Fatalf("%v: %+v", err, page)
	}
	return page.Proxies[0].Routes[0].Servers[0]
}
