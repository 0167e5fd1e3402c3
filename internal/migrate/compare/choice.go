package compare

import (
	"errors"
	"fmt"
	"io"

	"headgate/internal/config"
)

// Choice says which requests are compared.
type Choice struct {
	// Config has the routes that requests are made from, and the proxies that they belong
	// to. It may be nil where there is a List.
	Config *config.Config
	// List has URLs or lines of an access log (see FromList); without one the requests are
	// made from the routes.
	List io.Reader
	// Host is that of requests from a log that names none.
	Host string
	// Domains have the hosts of requests from routes whose virtual hosts name none: those
	// of expressions, and of proxies that answer for every host.
	Domains []string
	// Limit is how many requests there are at most.
	Limit int
}

// Requests returns the requests, and notes about those that could not be made. No request
// at all is an error.
func (c Choice) Requests() (requests []Request, notes []string, err error) {
	if c.List == nil {
		requests, notes = FromRoutes(c.Config, c.Domains...)
		if len(requests) > c.Limit {
			notes = append(notes, fmt.Sprintf("%d of %d requests are compared; --limit sets how many", c.Limit, len(requests)))
			requests = Spread(requests, c.Limit)
		}
	} else {
		var proxyOf func(Request) string
		if c.Config != nil {
			proxyOf = ProxyOf(c.Config)
		}
		requests, notes, err = FromList(c.List, c.Host, c.Limit, proxyOf)
	}
	if err == nil && len(requests) == 0 {
		err = errors.New("there is no request to send")
		for _, note := range notes {
			err = fmt.Errorf("%w: %s", err, note)
		}
	}
	return requests, notes, err
}

// Proxies returns the names of the proxies that requests belong to.
func Proxies(requests []Request) map[string]bool {
	all := map[string]bool{}
	for _, rq := range requests {
		all[rq.Proxy] = true
	}
	return all
}
