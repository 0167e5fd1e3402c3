package control

import (
	"crypto/tls"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"headgate/internal/testhouse"
)

// http3s makes the ports of a configuration speak HTTP/3.
func http3s(text string) string {
	return strings.NewReplacer("protocol: http,", "protocol: http3,", "protocol: http}", "protocol: http3}").Replace(text)
}

// client3 returns a client of HTTP/3.
func client3(t *testing.T) *http.Client {
	t.Helper()
	tr := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(func() { tr.Close() })
	return &http.Client{Transport: tr, Timeout: patience}
}

// status3 returns the status of a GET on a new connection, 0 if there is none.
func status3(t *testing.T, address string) int {
	t.Helper()
	tr := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.Close()
	rs, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + address + "/")
	if err != nil {
		t.Log(err)
		return 0
	}
	io.Copy(io.Discard, rs.Body)
	rs.Body.Close()
	return rs.StatusCode
}

func TestAnHTTP3PortServes(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	h := start(t, http3s(document(201, "a "+at[0]+" drain_timeout: 5s")))
	if got := status3(t, at[0]); got != 201 {
		t.Fatalf("got status %d, want 201", got)
	}
	p, _ := h.port("a", at[0])
	if p.State != "listening" || p.Protocol != "http3" || p.Accepted != 1 {
		t.Errorf("got %+v", p)
	}
	if n := h.log.count(`msg="port opened" port=a address=` + at[0] + " protocol=http3"); n != 1 {
		t.Errorf("that it was opened was said %d times, want once", n)
	}
	h.apply(http3s(document(202, "a "+at[0]+" drain_timeout: 5s")))
	if got := status3(t, at[0]); got != 202 {
		t.Errorf("after a change: got status %d, want 202", got)
	}
	if now, _ := h.port("a", at[0]); !now.Since.Equal(p.Since) {
		t.Errorf("got %+v, want the same socket", now)
	}
	h.apply(http3s(document(203, "a "+at[1])))
	if got := status3(t, at[1]); got != 203 {
		t.Errorf("moved: got status %d, want 203", got)
	}
	testhouse.Eventually(t, "the old socket has closed", func() bool { _, ok := h.port("a", at[0]); return !ok })
}

func TestAnHTTP3ClientIsToldToLeave(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	slow := startSlow(t)
	h := start(t, http3s(through(slow.url, "a "+at[0]+" drain_timeout: 10s")))
	c := client3(t)
	got := make(chan string, 1)
	go func() {
		rs, err := c.Get("https://" + at[0] + "/")
		if err != nil {
			got <- err.Error()
			return
		}
		b, _ := io.ReadAll(rs.Body)
		rs.Body.Close()
		got <- string(b)
	}()
	<-slow.arrived
	h.apply(http3s(document(203, "a "+at[1])))
	if p, _ := h.port("a", at[0]); p.State != "draining" || p.Connections != 1 {
		t.Errorf("got %+v, want it to drain", p)
	}
	// A change that would have the address back, under another name, and is not made.
	before, _ := h.port("a", at[0])
	if _, err := h.c.DryRun(Cause{Via: ViaAPI}, doc(http3s(document(204, "a "+at[1], "b "+at[0])))); err != nil {
		t.Fatal(err)
	}
	if after, _ := h.port("a", at[0]); !reflect.DeepEqual(after, before) {
		t.Errorf("a dry run made %+v of %+v", after, before)
	}
	if page := metricsPage(h); strings.Contains(page, `port="b"`) {
		t.Errorf("the page tells of port b: %s", lines(page, `port="b"`))
	}
	// The address is wanted back before the last connection has ended.
	h.apply(http3s(document(204, "back "+at[0])))
	testhouse.Eventually(t, "the metrics of port a are gone", func() bool { return !strings.Contains(metricsPage(h), `port="a"`) })
	if s := status3(t, at[0]); s != 204 {
		t.Errorf("taken back: got status %d, want 204", s)
	}
	slow.release <- struct{}{}
	if b := <-got; b != "done" {
		t.Errorf("the request under way: got %q", b)
	}
	h.finish()
}

func TestABusyUDPAddressRefusesAChange(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	h := start(t, http3s(document(201, "a "+at[0])))
	udp, err := quic.ListenAddr(at[1], &tls.Config{Certificates: []tls.Certificate{{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	err = h.try(http3s(document(202, "a "+at[1])))
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v, want a busy address", err)
	}
	if got := status3(t, at[0]); got != 201 {
		t.Errorf("after a refused change: got status %d, want 201", got)
	}
}
