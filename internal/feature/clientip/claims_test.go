package clientip

import (
	"testing"

	"headgate/internal/exchange/exchangetest"
)

func TestClaimsOfClientsAreDropped(t *testing.T) {
	for _, set := range []*Config{nil, behindProxies, {Enabled: true, CDN: []string{"cloudflare"}}} {
		filter := compile(t, set)
		for _, name := range []string{
			"Forwarded", "FORWARDED", "forwarded", "X-Forwarded", "X-Forwarded-For", "x-forwarded-proto", "X-FORWARDED-HOST",
			"X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Client-Cert", "X-Forwarded-Something-New",
			"X-Real-IP", "x-real-ip", "True-Client-IP", "CF-Connecting-IP", "Fastly-Client-IP", "X-Original-URL",
			"X_Forwarded_For", "X_FORWARDED_FOR", "x-forwarded_for", "X_Forwarded-For", "X.Forwarded.For", "X_Forwarded_New",
			"X_REAL_IP", "X-Real_IP", "True_Client_IP", "CF_CONNECTING_IP", "Fastly_Client-IP", "x_original_url", "X!Forwarded!For",
			"X_Forwarded", "X-Rewrite-URL", "X_Rewrite_URL", "X-Client-IP", "X_CLIENT_IP", "Client-IP", "client_ip", "X-Cluster-Client-IP",
			"X_Cluster_Client_IP", "X-Azure-ClientIP", "x_azure_clientip", "Fly-Client-IP", "fly_client_ip", "X-Host", "X_Host", "Proxy", "PROXY",
		} {
			ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept: v", name+": v", "X-Request-Id: v"))
			filter.Request(ex)
			if got := ex.Request.Header.Len(); got != 2 {
				t.Errorf("%s was not dropped", name)
			}
		}
	}
}

func TestOtherFieldsStay(t *testing.T) {
	names := []string{
		"Accept", "Cookie", "User-Agent", "X-Requested-With", "X-Request-ID", "X-Forward", "X-Forwardedness", "XForwardedFor",
		"X-Real", "X-Realip", "Forward", "Content-Type", "Client", "ClientIP", "Via", "X-Hosts", "Proxy-Features", "Tracestate", "Cache_Control", "Foo_Bar",
	}
	ex := exchangetest.New(t)
	for _, name := range names {
		ex.Request.Header.AddField(name, "v")
	}
	compile(t, nil).Request(ex)
	if got := ex.Request.Header.Len(); got != len(names) {
		t.Errorf("%d of %d fields stay: %v", got, len(names), ex.Request.Header.All())
	}
}
