package main

import (
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"headgate/internal/admin/api"
	"headgate/internal/config"
	"headgate/internal/control"
	"headgate/internal/event"
	"headgate/internal/notice"
	"headgate/internal/operator"
	"headgate/internal/setting/ipset"
	"headgate/internal/update"
)

// settings applies the webhooks, notices and sign-in provider of configurations, after the
// changes: a webhook that ends must not delay a change.
type settings struct {
	hooks     *notice.Sender
	operators *operator.Operators
	next      chan *config.Config // the newest one
	updates   *update.Watch
	stopped   sync.WaitGroup
	oidc      *config.OIDC // in use
	known     bool         // of oidc
}

// follow begins. Close ends it.
func follow(hooks *notice.Sender, operators *operator.Operators, updates *update.Watch) *settings {
	s := &settings{hooks: hooks, operators: operators, updates: updates, next: make(chan *config.Config, 1)}
	s.stopped.Go(func() {
		for cfg := range s.next {
			s.use(cfg)
		}
	})
	return s
}

// changed is called with every change, one at a time.
func (s *settings) changed(e *control.Event) {
	if e.After == nil {
		return
	}
	select {
	case <-s.next: // it was not applied yet
	default:
	}
	s.next <- e.After
}

// close ends it, when there are no changes any more.
func (s *settings) close() {
	close(s.next)
	s.stopped.Wait()
}

func (s *settings) use(cfg *config.Config) {
	var hooks []notice.Hook
	for name, w := range cfg.Webhooks {
		if w.Active && !cfg.Withheld("webhooks", name) {
			hooks = append(hooks, notice.Hook{Kind: notice.Webhooks, Name: name, URL: w.URL, Secret: w.Secret, Filter: event.Filter{Types: w.Events}})
		}
	}
	for name, n := range cfg.Notices {
		if n.Active && !cfg.Withheld("notices", name) {
			hooks = append(hooks, notice.Hook{Kind: notice.Notices, Name: name, Filter: event.Filter{Types: n.Events}, Notice: &n.Config})
		}
	}
	s.hooks.Set(hooks)
	s.updates.Use(cfg.Admin.UpdateCheck)
	if was, is := s.oidc, cfg.Admin.OIDC; !s.known || !sameOIDC(was, is) {
		s.oidc, s.known = is, true
		s.operators.SetOIDC(provider(is))
	}
}

// sameOIDC reports whether two providers are set alike: who is on the way through one
// need not begin anew.
func sameOIDC(a, b *config.OIDC) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Issuer == b.Issuer && a.ClientID == b.ClientID && a.ClientSecret == b.ClientSecret &&
		a.RedirectURL == b.RedirectURL && a.NameClaim == b.NameClaim &&
		slices.Equal(a.Scopes, b.Scopes) && slices.Equal(a.Roles, b.Roles)
}

// provider returns a sign-in provider in the form that the operators use.
func provider(o *config.OIDC) *operator.OIDC {
	if o == nil {
		return nil
	}
	out := &operator.OIDC{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret, RedirectURL: o.RedirectURL,
		Scopes: o.Scopes, NameClaim: o.NameClaim,
	}
	for _, r := range o.Roles {
		out.Roles = append(out.Roles, operator.OIDCRole{Claim: r.Claim, Value: r.Value, Role: operator.Role(r.Role)})
	}
	return out
}

// adminHosts returns the names that the admin listener answers to.
func adminHosts(c *control.Control) func() []string {
	return func() []string {
		if p := c.Plan(); p != nil {
			return p.Config().Admin.Hosts
		}
		return nil
	}
}

// consoleOrigins returns the origins at which browsers can use passkeys in the console at one
// of its host names: that of the admin listener if it has a certificate for the name, and
// those of the https ports if a proxy is in front of it.
func consoleOrigins(c *control.Control) func(host string) ([]string, string) {
	return func(host string) ([]string, string) {
		p := c.Plan()
		if p == nil {
			return nil, api.PasskeyPlain
		}
		var ports []uint16
		settings, why := p.Config().Admin, api.PasskeyPlain
		if p.AdminCovers(host) {
			ports = append(ports, settings.Address.Port())
		} else if p.AdminTLS() != nil {
			why = api.PasskeyCertificate
		}
		if len(settings.TrustedProxies) > 0 {
			ports = append(ports, 443)
			for _, port := range p.Config().Ports {
				if port.Protocol == config.HTTPS {
					ports = append(ports, port.Address.Port())
				}
			}
		}
		if len(ports) == 0 {
			return nil, why
		}
		slices.Sort(ports)
		var origins []string
		for _, n := range slices.Compact(ports) {
			if n == 443 {
				origins = append(origins, "https://"+host)
			} else {
				origins = append(origins, "https://"+host+":"+strconv.Itoa(int(n)))
			}
		}
		return origins, ""
	}
}

// trustedProxies reports whether an address is that of a proxy in front of the admin
// listener. The networks are read anew when the configuration has changed.
func trustedProxies(c *control.Control) func(netip.Addr) bool {
	type networks struct {
		of  *config.Config
		set *ipset.Set
	}
	var known atomic.Pointer[networks]
	return func(a netip.Addr) bool {
		p := c.Plan()
		if p == nil {
			return false
		}
		n := known.Load()
		if n == nil || n.of != p.Config() {
			set, err := ipset.New(p.Config().Admin.TrustedProxies)
			if err != nil {
				return false // the configuration was checked
			}
			n = &networks{p.Config(), set}
			known.Store(n)
		}
		return n.set.Contains(a)
	}
}
