package acme

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// provider writes the records of dns-01. A record must not replace others with the same
// name, since a wildcard and its domain need two at once. Its methods are called from one
// goroutine.
type provider interface {
	// wantsZone reports whether the zone has to be known.
	wantsZone() bool
	// present adds a TXT record with a value, cleanUp removes it. Names have no dot
	// at their end, and zone is one of the name's ancestors. To remove what is not
	// there is no error.
	present(ctx context.Context, zone, name, value string) error
	cleanUp(ctx context.Context, zone, name, value string) error
}

// kind is a kind of provider: its credentials and how it is made.
type kind struct {
	needs, may []string // the names of credentials
	https      bool     // whether it is an httpsWriter
	open       func(d *DNS) (provider, error)
}

// execProvider is the provider that runs a command.
const execProvider = "exec"

// providers are all kinds by name. It is never changed.
var providers = map[string]kind{
	"acme-dns":     {needs: []string{"username", "password", "subdomain"}, may: []string{anEndpoint}, open: openACMEDNS},
	"bunny":        {needs: []string{"api_key"}, may: []string{anEndpoint}, open: openBunny},
	"cloudflare":   {needs: []string{"api_token"}, may: []string{anEndpoint}, https: true, open: openCloudflare},
	"desec":        {needs: []string{"token"}, may: []string{anEndpoint}, open: openDesec},
	"digitalocean": {needs: []string{"token"}, may: []string{anEndpoint}, open: openDigitalOcean},
	"dnsimple":     {needs: []string{"token"}, may: []string{anEndpoint}, open: openDNSimple},
	"duckdns":      {needs: []string{"token"}, may: []string{anEndpoint}, open: openDuckDNS},
	"exec":         {open: func(d *DNS) (provider, error) { return command{d.Command}, nil }},
	"gandi":        {needs: []string{"token"}, may: []string{anEndpoint}, open: openGandi},
	"godaddy":      {needs: []string{"api_key", "api_secret"}, may: []string{anEndpoint}, open: openGoDaddy},
	"google":       {needs: []string{"service_account"}, may: []string{"project", anEndpoint}, open: openGoogleDNS},
	"hetzner":      {needs: []string{"api_token"}, may: []string{anEndpoint}, open: openHetzner},
	"httpreq":      {needs: []string{"endpoint"}, may: []string{"username", "password"}, open: openHTTPReq},
	"ionos":        {needs: []string{"api_key"}, may: []string{anEndpoint}, open: openIonos},
	"linode":       {needs: []string{"token"}, may: []string{anEndpoint}, open: openLinode},
	"namecheap":    {needs: []string{"api_user", "api_key", "client_ip"}, may: []string{anEndpoint}, open: openNamecheap},
	"netcup":       {needs: []string{"customer_number", "api_key", "api_password"}, may: []string{anEndpoint}, open: openNetcup},
	"ovh":          {needs: []string{"application_key", "application_secret", "consumer_key"}, may: []string{anEndpoint}, open: openOVH},
	"porkbun":      {needs: []string{"api_key", "secret_api_key"}, may: []string{anEndpoint}, open: openPorkbun},
	"rfc2136":      {needs: []string{"server"}, may: []string{"tsig_name", "tsig_secret", "tsig_algorithm"}, https: true, open: openUpdate},
	"route53":      {needs: []string{"access_key_id", "secret_access_key"}, may: []string{"session_token", "hosted_zone_id", anEndpoint}, open: openRoute53},
	"scaleway":     {needs: []string{"secret_key"}, may: []string{anEndpoint}, open: openScaleway},
	"vultr":        {needs: []string{"api_key"}, may: []string{anEndpoint}, open: openVultr},
}

// Providers returns the names of all providers, in order.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

// ProviderFields are the credentials of a provider.
type ProviderFields struct {
	// Name is the name of the provider.
	Name string `json:"name"`
	// Required are the names of its required credentials.
	Required []string `json:"required"`
	// Optional are the names of its optional credentials.
	Optional []string `json:"optional"`
}

// AllProviderFields returns the credentials of all providers, by their names.
func AllProviderFields() []ProviderFields {
	var all []ProviderFields
	for _, name := range Providers() {
		k := providers[name]
		all = append(all, ProviderFields{name, append([]string{}, k.needs...), append([]string{}, k.may...)})
	}
	return all
}

// newProvider returns the provider of an entry.
func newProvider(d *DNS) (provider, error) {
	if d == nil {
		return nil, fmt.Errorf("dns-01 needs dns")
	}
	k, ok := providers[d.Provider]
	if !ok {
		return nil, fmt.Errorf("unknown provider %q", d.Provider)
	}
	return k.open(d)
}

// httpReq is the provider httpreq: a service of the operator that accepts POST
// endpoint/present and endpoint/cleanup with {"fqdn": …, "value": …}.
type httpReq struct{ endpoint, username, password string }

func openHTTPReq(d *DNS) (provider, error) {
	return httpReq{strings.TrimSuffix(d.Credentials["endpoint"], "/"), d.Credentials["username"], d.Credentials["password"]}, nil
}

func (h httpReq) wantsZone() bool { return false }

func (h httpReq) present(ctx context.Context, _, name, value string) error {
	return h.post(ctx, "/present", name, value)
}

func (h httpReq) cleanUp(ctx context.Context, _, name, value string) error {
	return h.post(ctx, "/cleanup", name, value)
}

func (h httpReq) post(ctx context.Context, path, name, value string) error {
	body, err := json.Marshal(map[string]string{"fqdn": name + ".", "value": value})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.endpoint+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if h.username != "" {
		req.SetBasicAuth(h.username, h.password)
	}
	_, err = call(req)
	return err
}

// statusError is a status of a provider other than 2xx.
type statusError struct {
	status int
	text   string
}

// Error returns the request and the status.
func (e *statusError) Error() string { return e.text }

// stayAtHost follows a provider within its own server only: credentials in fields of the
// API's own and in bodies would go elsewhere too, or unencrypted. Another redirect is an
// answer like any that is not 2xx.
func stayAtHost(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host || len(via) >= maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// toProviders is the transport for all providers.
var toProviders = transport(nil)

// call sends a request to a provider and returns the body of its response, which is
// limited. A status other than 2xx is a *statusError with the beginning of the body. Errors
// contain neither the query, in which some APIs have their token, nor the body of the
// request.
func call(req *http.Request) ([]byte, error) {
	client := http.Client{Timeout: requestTimeout, Transport: toProviders, CheckRedirect: stayAtHost}
	resp, err := client.Do(req)
	if err != nil {
		var whole *url.Error
		if errors.As(err, &whole) {
			err = whole.Err // the rest is the URL
		}
		return nil, fmt.Errorf("%s %s%s: %w", req.Method, req.URL.Host, req.URL.Path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, &statusError{resp.StatusCode, fmt.Sprintf("%s %s%s answers %s: %s", req.Method, req.URL.Host, req.URL.Path, resp.Status, cut(string(body[:min(len(body), 512)])))}
	}
	return body, nil
}
