package plan

import (
	"errors"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/errorpages"
	"headgate/internal/feature/headers"
	"headgate/internal/feature/maintenance"
	"headgate/internal/feature/redirects"
	"headgate/internal/feature/tohttps"
	"headgate/internal/schema"
)

// content holds filters of what changes or answers requests and responses, which
// routes share.
type content struct {
	rules     map[*headers.Rule]ruled
	redirects map[*redirects.Rule]exchange.Filter
	toHTTPS   map[string]exchange.Filter // by the names of a proxy's ports
	pages     map[*errorpages.Page]exchange.Filter
	closed    map[*maintenance.Config]exchange.Filter
}

func newContent() content {
	return content{
		rules: map[*headers.Rule]ruled{}, redirects: map[*redirects.Rule]exchange.Filter{}, toHTTPS: map[string]exchange.Filter{},
		pages: map[*errorpages.Page]exchange.Filter{}, closed: map[*maintenance.Config]exchange.Filter{},
	}
}

// ruled are the filters of a list of header rules.
type ruled struct{ request, response exchange.Filter }

// headers compiles header rules, those of a proxy once.
func (c *compiler) headers(settings headers.Config) (ruled, error) {
	if len(settings) == 0 {
		return ruled{}, nil
	}
	known, ok := c.shared.content.rules[&settings[0]]
	if ok {
		return known, nil
	}
	var err error
	known.request, known.response, err = headers.Compile(settings)
	c.shared.content.rules[&settings[0]] = known
	return known, err
}

// errorPages adds the pages for errors.
func (c *compiler) errorPages(b *body, settings errorpages.Config) {
	if len(settings) == 0 {
		return
	}
	filter, known := c.shared.content.pages[&settings[0]]
	if !known {
		var err error
		filter, err = errorpages.Compile(settings, c.env)
		c.shared.content.pages[&settings[0]] = filter
		if e := (*errorpages.FileError)(nil); errors.As(err, &e) {
			own := len(b.settings.ErrorPages) > 0
			c.badFile(c.owner(b, own).Field("error_pages").Index(e.Page), err)
		}
	}
	b.add(filter)
}

// closed adds what closes a site.
func (c *compiler) closed(b *body, settings *maintenance.Config) {
	if settings == nil {
		return
	}
	filter, known := c.shared.content.closed[settings]
	if !known {
		var err error
		filter, err = maintenance.Compile(settings, c.env)
		c.shared.content.closed[settings] = filter
		if err != nil {
			c.badFile(c.owner(b, settings == b.settings.Maintenance).Field("maintenance"), err)
		}
	}
	b.closed = true
	b.add(filter)
}

// badFile tells of a page whose file cannot be read.
func (c *compiler) badFile(at schema.Place, err error) {
	at.Field("file").Problem(err.Error(), "write the path of a file that can be read; a relative one begins at the configuration file")
}

// owner returns the place of the route, or of the proxy that it has a setting
// from.
func (c *compiler) owner(b *body, own bool) schema.Place {
	if own {
		return place(c.report, b.proxy, b.number)
	}
	return c.report.Root().Field("proxies").Field(b.proxy.Name).Called("proxy", b.proxy.Name)
}

// elsewhere adds what sends clients to another URL, or away while the site is
// closed.
func (c *compiler) elsewhere(b *body, f *config.Features) error {
	if f.RedirectHTTPToHTTPS != nil {
		b.add(c.toHTTPS(b.proxy))
	}
	c.closed(b, f.Maintenance)
	if len(f.Redirects) == 0 {
		return nil
	}
	filter, known := c.shared.content.redirects[&f.Redirects[0]]
	if !known {
		var err error
		if filter, err = redirects.Compile(f.Redirects); err != nil {
			return err
		}
		c.shared.content.redirects[&f.Redirects[0]] = filter
	}
	b.redirects = f.Redirects
	b.add(filter)
	return nil
}

// toHTTPS returns the filter that sends the clients of a proxy to its HTTPS port.
// Proxies on the same ports share it.
func (c *compiler) toHTTPS(p *config.Proxy) exchange.Filter {
	key := strings.Join(p.Ports, "\n")
	filter, known := c.shared.content.toHTTPS[key]
	if known {
		return filter
	}
	numbers := map[string]int{}
	for _, port := range c.plan.ports {
		if port.Protocol() == config.HTTP {
			if n := c.config.SecurePort(p, port.settings); n != config.UsualHTTPS {
				numbers[port.Name()] = n
			}
		}
	}
	filter = tohttps.Compile(numbers)
	c.shared.content.toHTTPS[key] = filter
	return filter
}
