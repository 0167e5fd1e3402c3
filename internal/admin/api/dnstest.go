package api

import (
	"context"
	"maps"
	"strings"
	"time"

	"headgate/internal/certs/acme"
)

// dnsTestTime bounds a test of credentials: it queries name servers and the provider.
const dnsTestTime = 30 * time.Second

// dnsTestInput are the credentials of a DNS provider to test before they are saved.
type dnsTestInput struct {
	// Host is a host, or a wildcard, that a certificate is to be issued for.
	Host string `json:"host" required:"true" max:"253"`
	// Provider is the DNS provider.
	Provider string `json:"provider" required:"true" max:"64"`
	// Credentials are its credentials by name. Those that are masked are taken from Entry.
	Credentials map[string]string `json:"credentials,omitempty" max:"16"`
	// Zone is the zone that holds the record. Absent means the one that the DNS names.
	Zone string `json:"zone,omitempty" max:"253"`
	// Resolvers are the name servers to query, as ip:port.
	Resolvers []string `json:"resolvers,omitempty" max:"8"`
	// Entry is the acme entry whose credentials are used in place of masked ones. They are
	// only sent to the provider and endpoint that they were saved for.
	Entry string `json:"entry,omitempty" max:"64"`
}

// dnsTested is the result of a test of credentials.
type dnsTested struct {
	// OK is whether the provider accepted the credentials for the zone.
	OK bool `json:"ok" required:"true"`
	// Checked is whether the provider was queried. Some have no request that only reads.
	Checked bool `json:"checked" required:"true"`
	// Zone is the zone that holds the record.
	Zone string `json:"zone,omitempty"`
	// Record is the name of the TXT record.
	Record string `json:"record,omitempty"`
	// Trouble is why the credentials cannot be used, with the answer of the provider.
	Trouble *troubleBody `json:"trouble,omitempty"`
	// Warning is why they could not be tested.
	Warning string `json:"warning,omitempty"`
	// Duration is how long the test took, in milliseconds.
	Duration float64 `json:"duration_ms" required:"true"`
}

// testDNS tests the credentials of a DNS provider. Nothing is changed at the provider.
func (a *API) testDNS(c *call, in *dnsTestInput) (any, error) {
	if in.Provider == "exec" {
		return nil, refuse("invalid", "/provider", "exec runs a command, which is not run for a test", "issue a certificate from the staging directory to test it")
	}
	if what, remedy := acme.CheckName(in.Host); what != "" {
		return nil, refuse("invalid", "/host", what, remedy)
	}
	credentials, err := a.credentialsFor(in)
	if err != nil {
		return nil, err
	}
	d := &acme.DNS{Provider: in.Provider, Credentials: credentials, Zone: strings.TrimSuffix(in.Zone, ".")}
	if at, what, remedy := d.Wrong(in.Resolvers); what != "" {
		return nil, refuse("invalid", at, what, remedy)
	}
	ctx, cancel := context.WithTimeout(c.rq.Context(), dnsTestTime)
	defer cancel()
	begun := time.Now()
	found := acme.TestDNS(ctx, d, in.Resolvers, in.Host)
	c.note("acme.test_credentials", in.Provider, in.Host)
	return dnsTested{
		OK: found.Trouble == nil && found.Warning == "", Checked: found.Checked, Zone: found.Zone, Record: found.Record,
		Trouble: showTrouble(found.Trouble), Warning: found.Warning, Duration: float64(time.Since(begun).Microseconds()) / 1000,
	}, nil
}

// credentialsFor returns the credentials of a test with the saved ones in place of masks.
func (a *API) credentialsFor(in *dnsTestInput) (map[string]string, error) {
	given := maps.Clone(in.Credentials)
	var saved *acme.DNS
	if a.Control != nil {
		if p := a.Control.Plan(); p != nil {
			if e := p.Config().ACME[in.Entry]; e != nil {
				saved = e.DNS
			}
		}
	}
	kept := ""
	for name, value := range given {
		switch {
		case strings.Contains(value, "${"):
			return nil, refuse("invalid", "/credentials/"+escape(name), "variables are only replaced in a configuration that is applied", "apply the entry, then test it; or enter the value itself")
		case value != masked:
		case saved == nil || saved.Credentials[name] == "":
			return nil, refuse("invalid", "/credentials/"+escape(name), "no saved value exists", "enter the value")
		default:
			given[name], kept = saved.Credentials[name], name
		}
	}
	if kept == "" {
		return given, nil
	}
	if in.Provider != saved.Provider || given[endpointCredential] != saved.Credentials[endpointCredential] {
		return nil, refuse("invalid", "/credentials/"+escape(kept), "the saved value was entered for another provider or endpoint and is not sent to this one", "enter the value again")
	}
	return given, nil
}
