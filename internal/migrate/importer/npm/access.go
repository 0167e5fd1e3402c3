package npm

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/setting/password"
)

// maxUsers limits the passwords that are hashed: each takes about 50 ms.
const maxUsers = 1000

// accessLists makes each access list a policy, which proxies use.
func (t *translator) accessLists() error {
	users := 0
	for _, r := range t.tables["access_list"] {
		p := importer.NewObject()
		name := importer.Unused(t.Policies, strings.ToLower(r.text("name")), "access")
		t.policies[r.id] = name
		t.became(r, "name", importer.Same, p.As(name), "policy %s, which its proxies use", name)
		auth, err := t.users(r, &users)
		if err != nil {
			return err
		}
		filter := t.clients(r)
		any := r.flag("satisfy_any")
		switch {
		case any && auth.Len() > 0 && filter.Len() > 0:
			t.became(r, "satisfy_any", importer.Close, filter.As("ip_filter"), "headgate requires both: the address and the password")
			t.Check("access list %q lets clients in by their address or by a password; headgate's policy %s requires both, which is stricter: give those addresses a proxy or port of their own if they must come in without a password", r.text("name"), name)
		case any:
			t.became(r, "satisfy_any", importer.Same, importer.ByItself(), "there is only one of both")
		default:
			r.ignore("satisfy_any")
		}
		if filter.Len() > 0 {
			p.Set("ip_filter", filter)
		}
		if auth.Len() > 0 {
			if r.flag("pass_auth") {
				t.became(r, "pass_auth", importer.Same, auth.Set("forward_credentials", true).Field("forward_credentials"), "")
			}
			p.Set("basic_auth", auth)
			t.SharedPasswords(r.text("name"), any && filter.Len() > 0)
		}
		r.ignore("pass_auth", "proxy_host_count", "items", "clients")
		if p.Len() == 0 {
			t.Check("access list %q has neither addresses nor users; its policy is empty", r.text("name"))
			p.Set("description", "An access list without entries")
		}
		t.Policies.Set(name, p)
	}
	return nil
}

// users makes the users of a list those of basic_auth. Their passwords are hashed: the
// document never holds one.
func (t *translator) users(list *record, count *int) (importer.Object, error) {
	auth := importer.NewObject()
	for _, r := range t.tables["access_list_auth"] {
		if r.number("access_list_id") != list.id {
			continue
		}
		name, secret := r.text("username"), r.text("password")
		r.ignore("hint", "password")
		if *count++; *count > maxUsers {
			return auth, fmt.Errorf("%s: more than %d users in access lists; make the policies by hand, with headgate hash-password", t.name, maxUsers)
		}
		user := importer.NewObject().Set("name", name)
		if secret == "" {
			t.became(r, "username", importer.Close, user.As("users"), "the API does not return passwords: set password_hash by headgate hash-password")
			t.Check("user %q of access list %q needs a password: set password_hash by headgate hash-password", name, list.text("name"))
			user.Set("password_hash", "")
		} else {
			hash, err := password.Argon2id(secret)
			if err != nil {
				t.omit(r, "username", importer.Impossible, "the password cannot be used: %v", err)
				t.Check("user %q of access list %q was left out: %v", name, list.text("name"), err)
				continue
			}
			user.Set("password_hash", hash)
			t.became(r, "username", importer.Same, user.As("users"), "the password was hashed with argon2id")
		}
		if !auth.Has("users") {
			auth.Set("users", []importer.Object{})
		}
		auth.Append("users", user)
	}
	return auth, nil
}

// clients makes the addresses of a list an ip_filter. In nginx the first rule that fits
// decides, and Nginx Proxy Manager writes a last one that denies the rest.
func (t *translator) clients(list *record) importer.Object {
	var allowed []netip.Prefix
	var rules []*record
	open := importer.AllAddresses() // no rule has decided about them
	for _, r := range t.tables["access_list_client"] {
		if r.number("access_list_id") != list.id {
			continue
		}
		address, who := strings.TrimSpace(r.text("address")), importer.AllAddresses()
		r.ignore("note")
		if address != "all" {
			p, err := prefix(address)
			if err != nil {
				t.omit(r, "address", importer.Impossible, "not an address: names are not looked up")
				t.Check("access list %q: %s is not an address and was left out", list.text("name"), address)
				continue
			}
			who = []netip.Prefix{p}
		}
		rest := importer.Without(open, who)
		if r.text("directive") != "deny" {
			allowed = append(allowed, importer.Without(open, rest)...)
		}
		open, rules = rest, append(rules, r)
	}
	f := importer.NewObject()
	if len(rules) > 0 {
		f = importer.IPFilter(allowed)
	}
	became := f.As("ip_filter")
	if f.Len() == 0 { // they let all clients in
		became = importer.ByItself()
	}
	for _, r := range rules {
		t.became(r, "address", importer.Same, became, "ip_filter")
	}
	return f
}

func prefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// certificates translates certificates: custom ones with their files; those of
// Let's Encrypt are ordered by headgate from now on, with the files in use until
// then.
func (t *translator) certificates() {
	for _, r := range t.tables["certificate"] {
		var meta map[string]any
		_ = r.into("meta", &meta)
		r.ignore("domain_names", "expires_on", "nice_name")
		name := fmt.Sprintf("npm-%d", r.id)
		switch provider := r.text("provider"); provider {
		case "letsencrypt":
			if email, ok := meta["letsencrypt_email"].(string); ok && t.email == "" {
				t.email = email
			}
			t.wantTLS = true
			acme := importer.Value("directory", "letsencrypt")
			if dns, _ := meta["dns_challenge"].(bool); dns {
				provider, _ := meta["dns_provider"].(string)
				t.became(r, "provider", importer.Close, acme, "it is ordered by DNS (%s): give acme.letsencrypt.dns the provider and its credentials", provider)
				t.Check("certificate %s is ordered by DNS at %q: set acme.letsencrypt.dns, which cannot be read from here", r.title(), provider)
			} else {
				t.became(r, "provider", importer.Same, acme, "headgate orders it by acme.letsencrypt; the files are used until they end")
			}
			t.certificate(name, []string{filepath.Join(t.folder, "..", "letsencrypt", "live", name), filepath.Join("/etc/letsencrypt/live", name)}, r)
		default:
			t.wantTLS = true
			if t.certificate(name, []string{filepath.Join(t.folder, "custom_ssl", name), filepath.Join("/data/custom_ssl", name)}, r) {
				t.became(r, "provider", importer.Same, t.Certificates.Field(name), "by its files")
			} else {
				t.omit(r, "provider", importer.Impossible, "its files were not found")
			}
		}
	}
	if t.email != "" || t.letsencrypt() {
		entry := importer.NewObject().Set("directory", "letsencrypt")
		if t.email != "" {
			entry.Set("email", t.email)
		}
		t.ACME.Set("letsencrypt", entry)
	}
}

func (t *translator) letsencrypt() bool {
	for _, r := range t.tables["certificate"] {
		if r.text("provider") == "letsencrypt" {
			return true
		}
	}
	return false
}

// certificate names the files of a certificate, and reports whether they were found.
func (t *translator) certificate(name string, folders []string, r *record) bool {
	for _, folder := range folders {
		chain, key := filepath.Join(folder, "fullchain.pem"), filepath.Join(folder, "privkey.pem")
		if t.folder == "" {
			break
		}
		if _, err := t.files.Read(chain); err != nil {
			continue
		}
		t.Certificates.Set(name, importer.NewObject().Set("cert_file", clean(chain)).Set("key_file", clean(key)))
		return true
	}
	t.Check("the files of certificate %s were not found (looked for %s): name them in certificates, or let acme order it", r.title(), strings.Join(folders, " and "))
	return false
}

func clean(name string) string {
	if absolute, err := filepath.Abs(name); err == nil {
		return absolute
	}
	return name
}
