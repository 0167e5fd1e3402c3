package acme

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// None is what a proxy names that wants no entry, not even the default.
const None = "none"

// Config are the settings of an ACME entry: the authority that issues certificates, and how
// headgate proves that it controls a host. Proxies refer to the entry with `acme: NAME`;
// every virtual host of theirs that no certificate covers then gets one, which is renewed
// automatically.
type Config struct {
	// Directory is the ACME server: `letsencrypt`, `letsencrypt-staging` (for tests:
	// browsers do not trust it), `zerossl`, `google`, or the https URL of a directory.
	// Link-local addresses (169.254.0.0/16, fe80::/10) and those of cloud metadata are
	// rejected.
	Directory string `json:"directory" default:"letsencrypt" max:"2048" example:"https://ca.example.com/acme/directory"`
	// Fallbacks are the directories to use next, in this order, after one has failed twice
	// because it is unavailable or overloaded, or at once if its rate limit lasts longer
	// than the pause after a failure. A rejection, such as for a host that headgate does
	// not control, never leads to a fallback.
	Fallbacks []string `json:"fallbacks,omitempty" max:"4" example:"zerossl"`
	// CAFile is a PEM file with the authorities to verify the directory's TLS certificate
	// with, for a private directory. Absent means the system's.
	CAFile string `json:"ca_file,omitempty" host:"admin" max:"4096" example:"ca.pem"`
	// Email is the contact address of the account, which the directory can use before a
	// certificate expires or when it must be revoked.
	Email string `json:"email,omitempty" max:"256" example:"ops@example.com"`
	// EAB binds the account to an existing one at the authority (RFC 8555, section 7.3.4).
	// ZeroSSL and Google require it.
	EAB *EAB `json:"eab,omitempty"`
	// KeyType is the type of the certificates' keys.
	KeyType KeyType `json:"key_type" default:"ec256" enum:"ec256,ec384,rsa2048,rsa4096"`
	// Profile is a certificate profile of the directory, such as `tlsserver` or
	// `shortlived`. Absent means its default.
	Profile string `json:"profile,omitempty" max:"64" example:"shortlived"`
	// Domains are names to get certificates for in addition to the virtual hosts of
	// proxies. `*.example.com` covers every host with one more label, and needs dns-01.
	Domains []string `json:"domains,omitempty" max:"1000" example:"*.example.com"`
	// Challenge is how the authority verifies that headgate controls a host: `http-01` by a
	// response on an http port, `tls-alpn-01` in a handshake on an https port, `dns-01` by
	// a DNS record. `auto` uses those that can work.
	Challenge Challenge `json:"challenge" default:"auto" enum:"auto,http-01,tls-alpn-01,dns-01"`
	// Resolvers are the name servers for all lookups of the entry, as ip:port. Absent means
	// the system's, and the authoritative servers for the records of dns-01.
	Resolvers []string `json:"resolvers,omitempty" max:"8" example:"192.0.2.53:53"`
	// HTTPPort is the number of the port that receives connections to the public port 80,
	// if a router forwards them to another one.
	HTTPPort int `json:"http_port" default:"80" min:"1" max:"65535"`
	// HTTPSPort is the number of the port that receives connections to the public port 443.
	HTTPSPort int `json:"https_port" default:"443" min:"1" max:"65535"`
	// DNS configures the DNS provider for dns-01.
	DNS *DNS `json:"dns,omitempty"`
	// Renew is when a certificate is renewed: `ari` when the authority suggests it (RFC
	// 9773), or as with lifetime if it suggests nothing; `lifetime` when a third of the
	// lifetime is left, or half of it for less than ten days.
	Renew Renew `json:"renew" default:"ari" enum:"ari,lifetime"`
	// PreferredChain is the common name of the preferred root, if the authority offers
	// several chains.
	PreferredChain string `json:"preferred_chain,omitempty" max:"256" example:"ISRG Root X1"`
	// Default is whether the entry applies to every proxy with virtual hosts that has no
	// acme setting. `acme: none` on a proxy excludes it.
	Default bool `json:"default,omitempty"`
}

// EAB binds an account to an existing one at the authority.
type EAB struct {
	// KeyID is the identifier that the authority gave.
	KeyID string `json:"key_id" max:"512" example:"kid-1"`
	// HMACKey is the key that the authority gave, in base64url.
	HMACKey string `json:"hmac_key" secret:"true" max:"1024" example:"${EAB_HMAC_KEY}"`
}

// DNS configures the DNS provider for dns-01.
type DNS struct {
	// Provider is the provider of the zone, such as `cloudflare`; `rfc2136` for a name
	// server with dynamic updates; `exec` for your own command; `httpreq` for your own
	// service.
	Provider string `json:"provider" max:"64" example:"cloudflare"`
	// Credentials are the provider's credentials, by name.
	Credentials map[string]string `json:"credentials,omitempty" secret:"true" max:"16"`
	// Command is the program that `exec` runs, with the arguments `present NAME VALUE` and
	// later `cleanup NAME VALUE`. It must exit with status 0 within a minute.
	Command string `json:"command,omitempty" host:"disk" local:"true" max:"4096" example:"/usr/local/bin/acme-dns"`
	// Propagation is the maximum time until a record is visible at the zone's name servers.
	Propagation unit.Duration `json:"propagation" default:"10m" min:"0s" max:"1h"`
	// Zone is the zone for the records. Absent means the one that the DNS reports.
	Zone string `json:"zone,omitempty" max:"253" example:"example.com"`
}

// KeyType is the type of a certificate's key.
type KeyType string

// The kinds of keys.
const (
	EC256   KeyType = "ec256"
	EC384   KeyType = "ec384"
	RSA2048 KeyType = "rsa2048"
	RSA4096 KeyType = "rsa4096"
)

// Challenge is how an authority verifies that headgate controls a host.
type Challenge string

// The challenges (RFC 8555, section 8; RFC 8737).
const (
	Auto      Challenge = "auto"
	HTTP01    Challenge = "http-01"
	TLSALPN01 Challenge = "tls-alpn-01"
	DNS01     Challenge = "dns-01"
)

// Renew is when a certificate is renewed.
type Renew string

// What decides.
const (
	ByARI      Renew = "ari"
	ByLifetime Renew = "lifetime"
)

// directory is an ACME server with a short name.
type directory struct {
	url     string
	staging string // the URL at which failures cost nothing, or ""
	eab     bool   // whether accounts have to be bound to one that exists
	limits  limits
}

// limits are the known rate limits of an authority. 0 means unknown.
type limits struct {
	failures   int // failed orders an hour and set of names
	duplicates int // certificates a week for the same names
	domain     int // certificates a week for a registered domain
	orders     int // within orderWindow
}

// directories are the servers with short names. The limits are those that Let's Encrypt
// publishes, less one order for manual use.
var directories = map[string]directory{
	"letsencrypt": {
		url:     "https://acme-v02.api.letsencrypt.org/directory",
		staging: "https://acme-staging-v02.api.letsencrypt.org/directory",
		limits:  limits{failures: 4, duplicates: 5, domain: 50, orders: 290},
	},
	"letsencrypt-staging": {url: "https://acme-staging-v02.api.letsencrypt.org/directory"},
	"zerossl":             {url: "https://acme.zerossl.com/v2/DV90", eab: true},
	"google":              {url: "https://dv.acme-v02.api.pki.goog/directory", staging: "https://dv.acme-v02.test-api.pki.goog/directory", eab: true},
}

// directoryOf returns the server that a setting names.
func directoryOf(name string) directory {
	if d, ok := directories[name]; ok {
		return d
	}
	return directory{url: name}
}

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	checkDirectory(c.Directory, c.EAB, at.Field("directory"))
	for i, name := range c.Fallbacks {
		checkDirectory(name, c.EAB, at.Field("fallbacks").Index(i))
	}
	for i, r := range c.Resolvers {
		if _, err := netip.ParseAddrPort(r); err != nil {
			at.Field("resolvers").Index(i).Problemf("write ip:port, such as 192.0.2.53:53", "invalid address %q", r)
		}
	}
	for i, name := range c.Domains {
		what, remedy := CheckName(name)
		if what == "" && strings.HasPrefix(name, "*.") && c.DNS == nil {
			what, remedy = "a wildcard needs dns-01, and the entry has no dns", "add dns: {provider: …}, or name the hosts one by one"
		}
		if what != "" {
			at.Field("domains").Index(i).Problem(what, remedy)
		}
	}
	if c.Challenge == DNS01 && c.DNS == nil {
		at.Field("challenge").Problem("dns-01 needs dns", "add dns: {provider: …}")
	}
	if c.Email != "" && !plainAddress(c.Email) {
		at.Field("email").Problemf("write name@example.com", "invalid address %q", c.Email)
	}
	if c.EAB != nil {
		for field, value := range map[string]string{"key_id": c.EAB.KeyID, "hmac_key": c.EAB.HMACKey} {
			if value == "" {
				at.Field("eab").Field(field).Problem("missing", "write the value that the authority issued")
			}
		}
	}
	if c.DNS != nil {
		c.DNS.check(at.Field("dns"))
	}
}

// Wrong returns the first problem of the settings of a provider and of the resolvers of its
// entry, and what to do about it: at is the JSON pointer of the field, and what is empty if
// there is none.
func (d *DNS) Wrong(resolvers []string) (at, what, remedy string) {
	for i, r := range resolvers {
		if _, err := netip.ParseAddrPort(r); err != nil {
			return "/resolvers/" + strconv.Itoa(i), fmt.Sprintf("invalid address %q", r), "write ip:port, such as 192.0.2.53:53"
		}
	}
	p, ok := providers[d.Provider]
	if !ok {
		return "/provider", fmt.Sprintf("unknown provider %q", d.Provider), "name one of " + strings.Join(Providers(), ", ")
	}
	for _, key := range p.needs {
		if d.Credentials[key] == "" {
			return "/credentials/" + key, d.Provider + " needs " + key, "enter it"
		}
	}
	return "", "", ""
}

func checkDirectory(name string, eab *EAB, at schema.Place) {
	if d, ok := directories[name]; ok {
		if d.eab && eab == nil {
			at.Problemf("add eab: {key_id: …, hmac_key: …} from your account there", "%s needs an external account binding", name)
		}
		return
	}
	u, err := url.Parse(name)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		at.Problemf("write letsencrypt, letsencrypt-staging, zerossl, google, or the https URL of a directory", "unknown directory %q", name)
	}
}

func (d *DNS) check(at schema.Place) {
	if d.Provider == "" {
		at.Field("provider").Problem("missing", "name one of "+strings.Join(Providers(), ", "))
		return
	}
	p, ok := providers[d.Provider]
	if !ok {
		at.Field("provider").Problemf("name one of "+strings.Join(Providers(), ", "), "unknown provider %q", d.Provider)
		return
	}
	for _, key := range p.needs {
		if d.Credentials[key] == "" {
			at.Field("credentials").Field(key).Problemf("add "+key+" under credentials", "%s needs %s", d.Provider, key)
		}
	}
	for key := range d.Credentials {
		if !slices.Contains(p.needs, key) && !slices.Contains(p.may, key) {
			at.Field("credentials").Field(key).Problemf("it takes "+strings.Join(append(slices.Clone(p.needs), p.may...), ", "), "%s has no credential %q", d.Provider, key)
		}
	}
	switch {
	case d.Provider == execProvider && d.Command == "":
		at.Field("command").Problem("missing", "name the command to run")
	case d.Provider != execProvider && d.Command != "":
		at.Field("command").Problem("only exec runs a command", "remove it, or write provider: exec")
	}
}

// plainAddress reports whether a text is an address of mail without a name and
// without characters that a URL of mailto would have to escape.
func plainAddress(s string) bool {
	local, host, ok := strings.Cut(s, "@")
	return ok && local != "" && strings.Contains(host, ".") && !strings.ContainsAny(s, " \t\r\n<>()[]\\,;:\"%?#&/") && !strings.Contains(host, "@")
}
