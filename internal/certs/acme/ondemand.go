package acme

import (
	"net/url"
	"slices"

	"headgate/internal/schema"
)

// OnDemand are the settings for certificates that are ordered when a client first connects
// with a host name, for applications that serve the domains of their customers. They apply
// to the hosts that match a wildcard or an expression of the proxy, or that no other proxy
// has. A host is allowed if `list` has it, or else if the application at `ask` allows it.
type OnDemand struct {
	// Ask is the URL that is requested, with the query parameter `domain`, before a
	// certificate is ordered or renewed. Status 2xx allows the host. Every other response, a
	// redirect, and no response within 5 seconds refuse it: a refused host is not asked for
	// again for a minute, after a failure for 5 seconds. Link-local addresses and those of
	// cloud metadata are rejected.
	Ask string `json:"ask,omitempty" host:"admin" max:"2048" example:"http://127.0.0.1:3000/allowed"`
	// List contains the hosts that are allowed without a request: names, and wildcards for
	// one label.
	List []string `json:"list,omitempty" max:"10000" example:"[shop.example.com, \"*.customers.example.com\"]"`
	// MaxPerHour is how many orders that were caused by clients are placed within an hour, by
	// all machines that share a store. Renewals do not count.
	MaxPerHour int `json:"max_per_hour" required:"true" min:"1" max:"1000" example:"20"`
	// MaxCertificates is how many certificates of the proxy are kept. At the limit no new
	// host gets one; existing ones are renewed.
	MaxCertificates int `json:"max_certificates" default:"1000" min:"1" max:"100000"`
}

// Check reports problems of the settings, which are at at.
func (c *OnDemand) Check(at schema.Place) {
	if c.Ask == "" && len(c.List) == 0 {
		at.Problem("nothing limits which hosts get certificates", "add ask with a URL of your application, or list with the hosts")
	}
	if c.Ask != "" {
		u, err := url.Parse(c.Ask)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
			at.Field("ask").Problem("not an http or https URL", "write it as http://127.0.0.1:3000/allowed")
		} else if u.Query().Has("domain") {
			at.Field("ask").Problem("the query parameter domain is set by headgate", "remove it")
		}
	}
	for i, name := range c.List {
		if what, remedy := CheckName(name); what != "" {
			at.Field("list").Index(i).Problem(what, remedy)
		}
	}
}

// Lists reports whether the list has a host, which is in the form of fold.
func (c *OnDemand) Lists(host string) bool {
	return slices.ContainsFunc(c.List, func(n string) bool { return Covers([]string{n}, host) })
}
