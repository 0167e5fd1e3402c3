package caddy

import (
	"net/mail"
	"net/netip"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// authority is where certificates are ordered, and for whom.
type authority struct{ directory, email string }

// acmeOf returns the ACME entry of a host, "" where it has none: its certificate comes from
// a file, or is one of Caddy's own authority.
func (t *translator) acmeOf(host string) string {
	a, known := t.issued[host]
	switch {
	case known && a == nil, t.noHTTPS || t.noACME, isLocal(host):
		return ""
	case !known:
		a = &authority{directoryOf(t.ca), t.email}
	}
	if strings.HasPrefix(host, "*.") {
		t.Check("%s: its certificate has to be ordered by DNS: give an entry of acme its dns, and name it in the proxy", host)
		return ""
	}
	return t.acmeEntry(*a)
}

// isLocal reports whether Caddy signs the certificate of a host itself, since no public
// authority would.
func isLocal(host string) bool {
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	last := host[strings.LastIndexByte(host, '.')+1:]
	return err == nil || !strings.Contains(host, ".") && !strings.Contains(host, "${") || last == "localhost" || last == "local" || last == "internal" || strings.HasSuffix(host, ".home.arpa")
}

// acmeEntry returns the name of the entry for an authority, which is made if there is none.
func (t *translator) acmeEntry(a authority) string {
	name, known := t.entries[a]
	if !known {
		if name = "main"; len(t.entries) > 0 {
			name = "acme-" + strconv.Itoa(len(t.entries)+1)
		}
		t.entries[a] = name
		entry := importer.NewObject().Set("directory", a.directory)
		if _, err := mail.ParseAddress(a.email); err == nil && strings.Contains(a.email[strings.LastIndexByte(a.email, '@'):], ".") || strings.Contains(a.email, "${") {
			entry.Set("email", a.email)
		} else if a.email != "" {
			t.Check("the email %s of the acme entry %s was left out: no authority accepts it", a.email, name)
		}
		t.ACME.Set(name, entry)
	}
	return name
}

func directoryOf(ca string) string {
	switch {
	case ca == "", strings.Contains(ca, "acme-v02.api.letsencrypt.org"):
		return "letsencrypt"
	case strings.Contains(ca, "acme-staging-v02"):
		return "letsencrypt-staging"
	case strings.Contains(ca, "zerossl"):
		return "zerossl"
	}
	return ca
}

// certificate returns the field of the certificate of two files.
func (t *translator) certificate(cert, key string) (name string, f importer.Field) {
	pair := [2]string{cert, key}
	name, known := t.pairs[pair]
	if !known {
		name = "caddy-" + strconv.Itoa(t.Certificates.Len()+1)
		t.Certificates.Set(name, importer.NewObject().Set("cert_file", cert).Set("key_file", key))
		t.pairs[pair] = name
	}
	return name, t.Certificates.Field(name)
}

// tls translates the directive tls of a site with these hosts.
func (t *translator) tls(d *directive, hosts []string) {
	own := &authority{directoryOf(t.ca), t.email}
	changed := false
	switch args := d.args(); {
	case len(args) == 2:
		name, f := t.certificate(args[0], args[1])
		own, changed = nil, true
		t.Became(d, importer.Same, f, "certificates.%s", name)
	case len(args) == 1 && args[0] == "internal":
		own, changed = nil, true
		t.Became(d, importer.Close, importer.ByItself(), "the self-signed certificate of headgate")
	case len(args) == 1 && args[0] == "force_automate":
		changed = true
	case len(args) == 1:
		own.email, changed = args[0], true
	}
	for _, c := range d.block {
		own, changed = t.tlsOption(c, own, changed)
	}
	if own != nil && own.email != "" {
		f := importer.NewObject().Set("email", own.email).Field("email")
		t.Became(d, importer.Same, f, "acme")
	}
	t.Became(d, importer.Same, importer.ByItself(), "acme of the proxy")
	for _, h := range hosts {
		if changed {
			t.issued[h] = own
		}
	}
}

// tlsOption translates an option of tls.
func (t *translator) tlsOption(c *directive, own *authority, changed bool) (*authority, bool) {
	switch c.name() {
	case "ca":
		if own != nil {
			own.directory = directoryOf(c.arg(0))
		}
		t.Became(c, importer.Same, importer.NewObject().Set("directory", directoryOf(c.arg(0))).Field("directory"), "directory of the acme entry")
		return own, true
	case "issuer":
		if c.arg(0) == "internal" {
			t.inside(c, importer.Impossible, "headgate has no authority of its own")
			t.Became(c, importer.Close, importer.ByItself(), "the self-signed certificate of headgate")
			return nil, true
		}
		if c.arg(0) != "acme" && c.arg(0) != "zerossl" {
			break
		}
		for _, o := range c.block {
			own, changed = t.tlsOption(o, own, changed)
		}
		t.Became(c, importer.Same, importer.ByItself(), "acme of the proxy")
		return own, true
	case "dir":
		if own != nil && strings.Contains(c.arg(0), "://") {
			own.directory = directoryOf(c.arg(0))
			t.Became(c, importer.Same, importer.NewObject().Set("directory", own.directory).Field("directory"), "directory of the acme entry")
			return own, true
		}
	case "email":
		if own != nil {
			own.email = c.arg(0)
			t.Became(c, importer.Same, importer.NewObject().Set("email", own.email).Field("email"), "email of the acme entry")
			return own, true
		}
	case "on_demand":
		return own, changed // see demand
	case "dns":
		t.sayAll(c, importer.Impossible, "give the acme entry its dns: the provider and its credentials")
		t.Check("%s:%d: the certificate came by DNS at %s: set dns of the acme entry", c.File, c.Line, c.arg(0))
		return own, changed
	case "protocols", "ciphers", "curves", "alpn":
		t.sayAll(c, importer.Impossible, "write tls of the port: min_version, for all its hosts")
		return own, changed
	case "client_auth":
		t.leaveOut(c, "clients had to show a certificate: set tls.client_auth and tls.client_ca of the https port")
		return own, changed
	}
	t.sayAll(c, importer.Impossible, "write it in the acme entry, or in tls of the port")
	return own, changed
}

// tlsApp translates certificates from files, and the authorities.
func (t *translator) tlsApp(v *value) {
	onDemand := v.get("automation", "on_demand")
	for _, at := range []*value{onDemand.get("ask"), onDemand.get("permission", "endpoint")} {
		if at.text != "" && (onDemand.get("permission", "module").text == "http" || at == onDemand.get("ask")) {
			t.ask = at.text
			t.allowing = append(t.allowing, at)
			if module := onDemand.get("permission", "module"); module.is() {
				t.allowing = append(t.allowing, module)
			}
		}
	}
	for _, one := range v.get("certificates", "load_files").list {
		name, f := t.certificate(one.get("certificate").text, one.get("key").text)
		t.Became(one.get("certificate"), importer.Same, f, "certificates.%s", name)
		t.Became(one.get("key"), importer.Same, f, "certificates.%s", name)
		t.sayValue(one.get("tags"), importer.Ignored, "certificates are chosen by the names in them")
	}
	for _, p := range v.get("automation", "policies").list {
		subjects := p.get("subjects")
		own := &authority{directory: "letsencrypt"}
		for i, issuer := range p.get("issuers").list {
			t.issuer(issuer, &own, i == 0)
		}
		for _, h := range subjects.texts() {
			t.issued[folded(h)] = own
		}
		t.demandPolicy(p, subjects)
		if !subjects.is() && own != nil {
			t.ca, t.email = own.directory, own.email
		}
		t.sayValue(subjects, importer.Ignored, "the hosts of the proxies that name the acme entry are ordered")
	}
	for _, h := range v.get("certificates", "automate").texts() {
		if t.issued[h] == nil {
			t.issued[h] = &authority{directoryOf(t.ca), t.email}
		}
	}
	t.sayValue(v.get("certificates", "automate"), importer.Ignored, "the hosts of the proxies that name the acme entry are ordered")
}

// issuer translates an authority. Of several the first one counts.
func (t *translator) issuer(v *value, own **authority, first bool) {
	a := &authority{directory: directoryOf(v.get("ca").text), email: v.get("email").text}
	switch module := v.get("module").text; module {
	case "acme", "zerossl":
		if !first {
			t.sayValue(v, importer.Impossible, "an acme entry has one authority")
			return
		}
		if module == "zerossl" {
			a.directory = "zerossl"
		}
		*own = a
		t.Became(v.get("email"), importer.Same, importer.NewObject().Set("email", a.email).Field("email"), "email of the acme entry")
		t.Became(v.get("ca"), importer.Same, importer.NewObject().Set("directory", a.directory).Field("directory"), "directory of the acme entry")
		if dns := v.get("challenges", "dns"); dns.is() {
			t.sayValue(dns, importer.Impossible, "give the acme entry its dns: the provider and its credentials")
			t.Check("certificates came by DNS at %s: set dns of the acme entry", dns.get("provider", "name").text)
		}
		t.Became(v.get("module"), importer.Same, importer.ByItself(), "acme of the proxies")
	case "internal":
		if first {
			*own = nil
		}
		t.Became(v, importer.Close, importer.ByItself(), "the self-signed certificate of headgate")
	default:
		t.sayValue(v, importer.Impossible, "certificates come by ACME or from files")
	}
}

// connections translates the policies of connections: hosts whose certificate comes from
// files have none ordered.
func (t *translator) connections(v *value) {
	for _, p := range v.get("tls_connection_policies").list {
		if !p.get("certificate_selection").is() {
			continue
		}
		for _, h := range p.get("match", "sni").texts() {
			t.issued[folded(h)] = nil
		}
	}
}
