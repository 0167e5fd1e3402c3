package acme

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// namecheap writes records by the API of Namecheap, which knows only all records of a
// domain: what a change does not touch is written again as it was read.
type namecheap struct {
	base, user, key, client string

	domain namecheapDomain // as it was read last
}

// namecheapDomain are all records of a domain.
type namecheapDomain struct {
	UsesOurs  string          `xml:"IsUsingOurDNS,attr"`
	EmailType string          `xml:",attr"`
	Hosts     []namecheapHost `xml:"host"`
	HostsToo  []namecheapHost `xml:"Host"` // as the documentation has it
}

type namecheapHost struct {
	Name    string `xml:",attr"`
	Type    string `xml:",attr"`
	Address string `xml:",attr"`
	MXPref  string `xml:",attr"`
	TTL     string `xml:",attr"`
}

// namecheapAnswer is what every command answers.
type namecheapAnswer struct {
	Status string `xml:",attr"`
	Errors []struct {
		Number string `xml:",attr"`
		Text   string `xml:",chardata"`
	} `xml:"Errors>Error"`
	Domain namecheapDomain `xml:"CommandResponse>DomainDNSGetHostsResult"`
	Set    struct {
		IsSuccess string `xml:",attr"`
	} `xml:"CommandResponse>DomainDNSSetHostsResult"`
}

func openNamecheap(d *DNS) (provider, error) {
	c := d.Credentials
	return newSetWriter(&namecheap{
		base: cmp.Or(c[anEndpoint], "https://api.namecheap.com/xml.response"), user: c["api_user"], key: c["api_key"], client: c["client_ip"],
	}), nil
}

// command sends a command for a domain. The credentials are in the body, so that they do
// not appear in logs of proxies.
func (p *namecheap) command(ctx context.Context, name, zone string, more url.Values) (*namecheapAnswer, error) {
	tld, _ := publicsuffix.PublicSuffix(zone)
	sld := strings.TrimSuffix(zone, "."+tld)
	if sld == zone || strings.Contains(sld, ".") {
		return nil, noZone(zone, "Namecheap has the records of registered domains only")
	}
	form := url.Values{"ApiUser": {p.user}, "ApiKey": {p.key}, "UserName": {p.user}, "ClientIp": {p.client}, "Command": {"namecheap.domains.dns." + name}, "SLD": {sld}, "TLD": {tld}}
	for k, v := range more {
		form[k] = v
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body, err := call(req)
	if err != nil {
		return nil, err
	}
	answer := &namecheapAnswer{}
	if err := xml.Unmarshal(body, answer); err != nil {
		return nil, fmt.Errorf("%s answers what cannot be read: %w", name, err)
	}
	if len(answer.Errors) > 0 || answer.Status != "OK" {
		return nil, namecheapError(name, answer)
	}
	return answer, nil
}

// namecheapError converts an error of the API, whose status is 200, into one with the
// corresponding status.
func namecheapError(command string, a *namecheapAnswer) error {
	if len(a.Errors) == 0 {
		return &statusError{http.StatusBadGateway, command + " answers neither a result nor an error"}
	}
	status := http.StatusBadRequest
	switch number := a.Errors[0].Number; {
	case strings.HasPrefix(number, "10111") || strings.HasPrefix(number, "10101") || strings.HasPrefix(number, "10301"): // user, key or address
		status = http.StatusUnauthorized
	case number == "2019166" || number == "2016166": // not in the account
		status = http.StatusNotFound
	case strings.HasPrefix(number, "3") || strings.HasPrefix(number, "5"): // of who runs the zone, or unknown
		status = http.StatusBadGateway
	}
	return &statusError{status, fmt.Sprintf("%s answers error %s: %s", command, a.Errors[0].Number, cut(strings.TrimSpace(a.Errors[0].Text)))}
}

func (p *namecheap) read(ctx context.Context, zone, sub string) (values []string, err error) {
	answer, err := p.command(ctx, "getHosts", zone, nil)
	if err != nil {
		return nil, err
	}
	p.domain = answer.Domain
	p.domain.Hosts = append(p.domain.Hosts, p.domain.HostsToo...)
	if strings.EqualFold(p.domain.UsesOurs, "false") {
		return nil, noZone(zone, "the domain uses other name servers than Namecheap's")
	}
	for _, h := range p.domain.Hosts {
		if h.Type == "TXT" && h.Name == sub {
			values = append(values, strings.Trim(h.Address, `"`))
		}
	}
	return values, nil
}

func (p *namecheap) write(ctx context.Context, zone, sub string, values []string) error {
	hosts := slices.DeleteFunc(slices.Clone(p.domain.Hosts), func(h namecheapHost) bool { return h.Type == "TXT" && h.Name == sub })
	for _, v := range values {
		hosts = append(hosts, namecheapHost{Name: sub, Type: "TXT", Address: v, TTL: strconv.Itoa(recordTTL)})
	}
	form := url.Values{}
	if p.domain.EmailType != "" {
		form.Set("EmailType", p.domain.EmailType) // else mail of the domain would be lost
	}
	for i, h := range hosts {
		n := strconv.Itoa(i + 1)
		form.Set("HostName"+n, h.Name)
		form.Set("RecordType"+n, h.Type)
		form.Set("Address"+n, h.Address)
		form.Set("TTL"+n, cmp.Or(h.TTL, "1800"))
		if h.MXPref != "" {
			form.Set("MXPref"+n, h.MXPref)
		}
	}
	answer, err := p.command(ctx, "setHosts", zone, form)
	if err == nil && !strings.EqualFold(answer.Set.IsSuccess, "true") {
		err = &statusError{http.StatusBadGateway, "setHosts answers that it did not succeed"}
	}
	return err
}
