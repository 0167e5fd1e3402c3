package tohttps

import (
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

func TestClientsAreSentToHTTPS(t *testing.T) {
	filter, _ := Compile(nil, exchange.Env{SecurePorts: map[string]int{"web": 8443}})
	for _, c := range []struct {
		name, method, target, host, port string
		status                           int
		want                             string
	}{
		{"side by side", "GET", "/a?b=c", "shop.example:8080", "web", 301, "https://shop.example:8443/a?b=c"},
		{"at 443", "HEAD", "/", "shop.example", "usual", 301, "https://shop.example/"},
		{"in front", "GET", "/", "shop.example", "other", 301, "https://shop.example/"},
		{"form", "POST", "/a", "shop.example", "usual", 308, "https://shop.example/a"},
		{"IPv6", "GET", "/", "[::1]:8080", "web", 301, "https://[::1]:8443/"},
		{"asterisk", "OPTIONS", "*", "shop.example", "usual", 308, "https://shop.example"},
	} {
		ex := exchangetest.New(t, exchangetest.Head(c.method, c.target), exchangetest.Host(c.host))
		ex.Place = &exchange.Place{Port: c.port}
		front := exchangetest.Run(t, ex, nil, filter)
		if front.Status != c.status || front.Field("Location") != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.name, front.Status, front.Field("Location"), c.status, c.want)
		}
	}
}

func TestNobodyIsSentFromHTTPS(t *testing.T) {
	filter, _ := Compile(nil, exchange.Env{})
	for _, ex := range []*exchange.Exchange{
		exchangetest.New(t, exchangetest.Secure()),
		exchangetest.New(t, exchangetest.Head("GET", "/.well-known/acme-challenge/token")),
	} {
		if answer := filter.Request(ex); answer != nil {
			t.Errorf("%s %s: %+v", ex.Request.Scheme, ex.Request.Path, answer)
		}
	}
	ex := exchangetest.New(t, exchangetest.Host(""))
	if answer := filter.Request(ex); answer == nil || answer.Reason != exchange.BadRequest {
		t.Errorf("without a Host: %+v, want bad_request", answer)
	}
}
