package inputs

import (
	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/file"
	"headgate/internal/upstream"
)

// needs is what a configuration needs from outside of it.
type needs struct {
	files []file.Wanted
	cdns  []string
	pairs []wantedPair
	// selfSigned and affinity say that a port, a TCP proxy or the admin listener speaks TLS, and
	// that a route has a sticky cookie.
	selfSigned, affinity bool
	// by are the proxies that need something, each with what that is.
	by map[*config.Proxy]needs
}

// wantedPair is a certificate and its key.
type wantedPair struct {
	name  string
	place Place
}

// needsOf goes over a configuration. What is known of the proxies of the one before,
// which may be nil, is not worked out again. Most need nothing.
func needsOf(cfg, before *config.Config, known map[*config.Proxy]needs) needs {
	n := needs{by: map[*config.Proxy]needs{}}
	for _, p := range cfg.Ports {
		if !p.Active || !cfg.Here(p.Nodes) || p.Protocol != config.HTTPS && p.Protocol != config.HTTP3 {
			continue
		}
		if p.TLS.ClientAuth != config.ClientAuthOff {
			n.authorities(p.TLS.ClientCA)
		}
	}
	n.selfSigned = cfg.SpeaksTLS()
	if n.selfSigned {
		for name, c := range cfg.Certificates {
			n.pairs = append(n.pairs, wantedPair{name, PlaceOf(c)})
		}
	}
	for name, p := range cfg.Proxies {
		one := needs{}
		if before != nil && before.Proxies[name] == p {
			one = known[p]
		} else if p.Active {
			one.proxy(p)
		}
		if len(one.files)+len(one.cdns)+len(one.pairs) > 0 || one.affinity {
			n.add(p, one)
		}
	}
	for _, p := range cfg.TCPProxies {
		if p.Active && cfg.Here(p.Nodes) {
			for _, s := range p.Servers {
				n.server(s.TLS)
			}
			if p.TLS != nil && p.TLS.ClientAuth != config.ClientAuthOff {
				n.authorities(p.TLS.ClientCA)
			}
		}
	}
	return n
}

// add adds what a proxy needs.
func (n *needs) add(p *config.Proxy, one needs) {
	n.by[p] = one
	n.files = append(n.files, one.files...)
	n.cdns = append(n.cdns, one.cdns...)
	n.pairs = append(n.pairs, one.pairs...)
	n.affinity = n.affinity || one.affinity
}

func (n *needs) proxy(p *config.Proxy) {
	n.features(&p.Features)
	for _, r := range p.Routes {
		n.features(&r.Features)
		for _, s := range r.Servers {
			n.server(s.TLS)
		}
		if r.Mirror != nil {
			for _, s := range r.Mirror.Servers {
				n.server(s.TLS)
			}
		}
		if r.SignIn != nil {
			n.files = append(n.files, r.SignIn.Files()...)
		}
		n.affinity = n.affinity || r.StickyCookie != nil && r.StickyCookie.Enabled || r.Split != nil
	}
}

func (n *needs) features(f *config.Features) {
	if f.ClientIP != nil {
		n.cdns = append(n.cdns, f.ClientIP.CDN...)
	}
	n.files = append(n.files, f.Files()...)
}

func (n *needs) authorities(name string) {
	n.files = append(n.files, file.Wanted{Name: name, Max: certs.MaxFile, TooLarge: certs.TooLarge})
}

// server adds what a server's TLS settings need; they may be nil.
func (n *needs) server(t *upstream.TLS) {
	if t == nil {
		return
	}
	if t.CAFile != "" {
		n.authorities(t.CAFile)
	}
	if t.ClientCertFile != "" {
		n.pairs = append(n.pairs, wantedPair{ForServers(t.ClientCertFile), Place{CertFile: t.ClientCertFile, KeyFile: t.ClientKeyFile}})
	}
}

// PlaceOf returns where a certificate of the configuration is.
func PlaceOf(c *config.Certificate) Place { return Place{c.CertFile, c.KeyFile, c.Stored} }
