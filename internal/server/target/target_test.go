package target

import (
	"strings"
	"testing"
)

func TestServicesAreNamedByTheirRecords(t *testing.T) {
	for _, c := range []struct{ url, address, authority, base, fault string }{
		{url: "srv+http://_http._tcp.example.com", address: "_http._tcp.example.com", authority: "example.com", base: "/"},
		{url: "SRV+HTTPS://_Api._TCP.Example.com./v1/", address: "_api._tcp.example.com", authority: "example.com", base: "/v1/"},
		{url: "srv+http://_http._tcp.example.com:80", fault: "a srv URL has no port: the SRV records contain it"},
		{url: "srv+http://example.com", fault: "is not the name of a service"},
		{url: "srv+http://_http._tcp", fault: "is not the name of a service"},
		{url: "srv+http://http.tcp.example.com", fault: "is not the name of a service"},
		{url: "srv+http://[::1]", fault: "a srv URL has no port: the SRV records contain it"},
		{url: "srv+ftp://_ftp._tcp.example.com", fault: "unknown scheme"},
		{url: "srv+unix:/run/app.sock", fault: "the URL has no scheme"},
	} {
		got, fault := Parse(c.url)
		what := ""
		if fault != nil {
			what = fault.What
		}
		if (what == "") != (c.fault == "") || !strings.Contains(what, c.fault) {
			t.Errorf("%s: fault %q, want %q", c.url, what, c.fault)
			continue
		}
		if fault == nil && (got.Address() != c.address || got.Authority() != c.authority || got.BasePath != c.base) {
			t.Errorf("%s: %+v, want %+v", c.url, got, c)
		}
	}
}
