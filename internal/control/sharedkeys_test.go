package control

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

// secure returns a configuration with a server at port NAME of the environment's variable.
func secure(app, address string) string {
	return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {secure: {address: %q, protocol: https}}
proxies: {shop: {routes: [{servers: [{url: "http://%s"}]}]}}
`, address, app)
}

// A client that comes to another machine resumes its TLS session, also after the keys were
// rotated, and machines that start at once have the same keys.
func TestMachinesResumeTheSessionsOfEachOther(t *testing.T) {
	e := newEngine()
	at := testhouse.Addresses(t, 2)
	// Each machine has an address of its own under one configuration.
	t.Setenv("SHARED_PORT", at[0])
	a := newMember(t, "a", secure(named(t, "app"), "${SHARED_PORT}"), e)
	t.Setenv("SHARED_PORT", at[1])
	b := newMember(t, "b", "", e)
	testhouse.Eventually(t, "b serves", func() bool { return b.c.Plan() != nil && b.c.Plan().Port("secure") != nil })
	same := func() {
		t.Helper()
		testhouse.Eventually(t, "both have the same keys", func() bool {
			one, two := a.c.Plan().TicketKeys(), b.c.Plan().TicketKeys()
			return len(one) > 0 && reflect.DeepEqual(one, two)
		})
	}
	same()
	if *a.c.quic != *b.c.quic {
		t.Error("the machines have different keys of QUIC")
	}
	before := fmt.Sprint(b.c.Plan().TicketKeys())
	if err := a.c.keys.rotate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	testhouse.Eventually(t, "the keys are rotated on b", func() bool { return fmt.Sprint(b.c.Plan().TicketKeys()) != before })
	same()

	client := &tls.Config{InsecureSkipVerify: true, ServerName: "shop.example.com", ClientSessionCache: tls.NewLRUClientSessionCache(8), NextProtos: []string{"http/1.1"}}
	if !resumed(t, at[0], client) { // the first connection fetches the ticket
		testhouse.Eventually(t, "the session of a is resumed on b", func() bool { return resumed(t, at[1], client) })
	}
}

// resumed makes one request, and reports whether its connection resumed a session.
func resumed(t *testing.T, address string, config *tls.Config) bool {
	t.Helper()
	c, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: shop.example.com\r\nConnection: close\r\n\r\n")
	if _, err := c.Read(make([]byte, 1)); err != nil { // the ticket comes before the response
		t.Fatal(err)
	}
	return c.ConnectionState().DidResume
}

// What an operator decides about a server on one machine holds on all, and is forgotten when
// no machine has the server.
func TestAServerIsDrainedOnAllMachines(t *testing.T) {
	e := newEngine()
	at := testhouse.Addresses(t, 2)
	app := named(t, "app")
	t.Setenv("SHARED_PORT", at[0])
	a := newMember(t, "a", secure(app, "${SHARED_PORT}"), e)
	t.Setenv("SHARED_PORT", at[1])
	b := newMember(t, "b", "", e)
	testhouse.Eventually(t, "b serves", func() bool { return b.c.Plan() != nil && b.c.Plan().Config().Proxies["shop"] != nil })
	held := func(m *member, want string) {
		t.Helper()
		testhouse.Eventually(t, fmt.Sprintf("the server is %q on %s", want, m.name), func() bool {
			list := m.c.HeldServers()
			return want == "" && len(list) == 0 || len(list) == 1 && list[0].Hold == want
		})
	}
	shop := HeldServer{Kind: "proxies", Proxy: "shop", Server: "http://" + app, Who: "anna"}
	if _, err := a.c.Hold(t.Context(), shop, exchange.HeldDraining); err != nil {
		t.Fatal(err)
	}
	held(b, "draining")
	if _, err := b.c.Hold(t.Context(), shop, exchange.HeldDisabled); err != nil {
		t.Fatal(err)
	}
	held(a, "disabled")
	b.stop()
	if _, err := a.c.Hold(t.Context(), shop, exchange.NotHeld); err != nil {
		t.Fatal(err)
	}
	b.start()
	held(b, "")
}

// udpSwitch passes datagrams of one client on to a machine, and later to another one, as a virtual
// address does that moves.
type udpSwitch struct {
	address string
	to      atomic.Pointer[net.UDPAddr]
}

func newUDPSwitch(t *testing.T, to string) *udpSwitch {
	t.Helper()
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s := &udpSwitch{address: front.LocalAddr().String()}
	s.lead(t, to)
	var client atomic.Pointer[net.UDPAddr]
	var both sync.WaitGroup
	pass := func(from *net.UDPConn, each func(data []byte, sender *net.UDPAddr)) {
		data := make([]byte, 2048)
		for {
			n, sender, err := from.ReadFromUDP(data)
			if err != nil {
				return
			}
			each(data[:n], sender)
		}
	}
	both.Go(func() {
		pass(front, func(data []byte, sender *net.UDPAddr) {
			client.Store(sender)
			back.WriteToUDP(data, s.to.Load())
		})
	})
	both.Go(func() {
		pass(back, func(data []byte, _ *net.UDPAddr) {
			if c := client.Load(); c != nil {
				front.WriteToUDP(data, c)
			}
		})
	})
	t.Cleanup(func() { front.Close(); back.Close(); both.Wait() })
	return s
}

func (s *udpSwitch) lead(t *testing.T, to string) {
	t.Helper()
	at, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	s.to.Store(at)
}

// A client of HTTP/3 comes to another machine in the middle of its connection: that machine does not
// know the connection, and resets it with the key that both have, so that the client does not wait
// for its idle timeout. It connects again and resumes its session.
func TestAClientOfQUICThatComesToAnotherMachineConnectsAgain(t *testing.T) {
	e := newEngine()
	at := testhouse.Addresses(t, 2)
	text := fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {quick: {address: "${SHARED_PORT}", protocol: http3}}
proxies: {shop: {routes: [{servers: [{url: "http://%s"}]}]}}
`, named(t, "app"))
	t.Setenv("SHARED_PORT", at[0])
	a := newMember(t, "a", text, e)
	t.Setenv("SHARED_PORT", at[1])
	b := newMember(t, "b", "", e)
	testhouse.Eventually(t, "b serves with the keys of a", func() bool {
		return b.c.Plan() != nil && b.c.Plan().Port("quick") != nil && reflect.DeepEqual(a.c.Plan().TicketKeys(), b.c.Plan().TicketKeys())
	})
	road := newUDPSwitch(t, at[0])
	tr := &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "shop.example.com", ClientSessionCache: tls.NewLRUClientSessionCache(8)},
		QUICConfig:      &quic.Config{MaxIdleTimeout: time.Minute, TokenStore: quic.NewLRUTokenStore(1, 4)},
	}
	defer tr.Close()
	client := &http.Client{Transport: tr, Timeout: 10 * time.Second}
	get := func() (*http.Response, error) {
		rs, err := client.Get("https://" + road.address + "/")
		if err != nil {
			return nil, err
		}
		defer rs.Body.Close()
		_, err = io.Copy(io.Discard, rs.Body)
		return rs, err
	}
	if _, err := get(); err != nil {
		t.Fatal(err)
	}
	road.lead(t, at[1])
	began := time.Now()
	_, err := get()
	if took := time.Since(began); !errors.As(err, new(*quic.StatelessResetError)) && err != nil || took > 5*time.Second {
		t.Errorf("the first request to the other machine: %v after %v, want a stateless reset", err, took)
	}
	rs, err := get()
	if err != nil {
		t.Fatal(err)
	}
	if !rs.TLS.DidResume {
		t.Error("the session of a is not resumed on b")
	}
}
