package clientip

import (
	"net/netip"
	"testing"

	"headgate/internal/exchange"
)

func request(fields ...string) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Begin(&exchange.Conn{Remote: netip.MustParseAddrPort("192.0.2.7:1234")}, nil)
	for _, name := range fields {
		ex.Request.Header.AddField(name, "v")
	}
	return ex
}

func TestClientIsThePeer(t *testing.T) {
	ex := request("X-Forwarded-For")
	if answer := Compile(nil).Request(ex); answer != nil {
		t.Fatalf("answer %+v, want none", answer)
	}
	if got := ex.ClientIP.String(); got != "192.0.2.7" {
		t.Errorf("ClientIP = %s, want 192.0.2.7", got)
	}
}

func TestClaimsOfClientsAreDropped(t *testing.T) {
	filter := Compile(nil)
	for _, name := range []string{
		"Forwarded", "FORWARDED", "forwarded", "X-Forwarded", "X-Forwarded-For", "x-forwarded-proto", "X-FORWARDED-HOST",
		"X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Client-Cert", "X-Forwarded-Something-New",
		"X-Real-IP", "x-real-ip", "True-Client-IP", "CF-Connecting-IP", "Fastly-Client-IP", "X-Original-URL",
		"X_Forwarded_For", "X_FORWARDED_FOR", "x-forwarded_for", "X_Forwarded-For", "X.Forwarded.For", "X_Forwarded_New",
		"X_REAL_IP", "X-Real_IP", "True_Client_IP", "CF_CONNECTING_IP", "Fastly_Client-IP", "x_original_url", "X!Forwarded!For",
		"X_Forwarded",
	} {
		ex := request("Accept", name, "X-Request-Id")
		filter.Request(ex)
		if got := ex.Request.Header.Len(); got != 2 {
			t.Errorf("%s was not dropped", name)
		}
	}
}

func TestOtherFieldsStay(t *testing.T) {
	names := []string{
		"Accept", "Cookie", "User-Agent", "X-Requested-With", "X-Request-ID", "X-Forward", "X-Forwardedness", "XForwardedFor",
		"X-Real", "X-Realip", "Forward", "Content-Type", "Client-IP", "Via", "Tracestate", "Cache_Control", "Foo_Bar",
	}
	ex := request(names...)
	Compile(nil).Request(ex)
	if got := ex.Request.Header.Len(); got != len(names) {
		t.Errorf("%d of %d fields stay: %v", got, len(names), ex.Request.Header.All())
	}
}

func TestNothingIsAllocated(t *testing.T) {
	filter := Compile(nil)
	ex := request("Accept", "User-Agent", "X-Requested-With")
	n := testing.AllocsPerRun(100, func() {
		ex.Request.Header.AddField("X_Forwarded_For", "v")
		filter.Request(ex)
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkNoClaims(b *testing.B) {
	filter := Compile(nil)
	ex := request("Accept", "Accept-Encoding", "Accept-Language", "Cookie", "User-Agent", "X-Requested-With", "Sec-Fetch-Mode", "Sec-Fetch-Site")
	for b.Loop() {
		filter.Request(ex)
	}
}
