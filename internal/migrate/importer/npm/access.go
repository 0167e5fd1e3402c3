package npm

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/setting/password"
)

// maxUsers bounds the passwords that are hashed: each takes some 50 ms.
const maxUsers = 1000

// accessLists makes each access list a policy, which proxies use.
func (t *translator) accessLists() error {
	users := 0
	for _, r := range t.tables["access_list"] {
		p := importer.NewObject()
		name := importer.Unused(t.Policies, strings.ToLower(r.text("name")), "access")
		t.policies[r.id] = name
		t.say(r, "name", importer.Same, "policy %s, which its proxies use", name)
		auth, err := t.users(r, &users)
		if err != nil {
			return err
		}
		filter := t.clients(r)
		any := r.flag("satisfy_any")
		switch {
		case any && auth.Len() > 0 && filter.Len() > 0:
			t.say(r, "satisfy_any", importer.Close, "headgate asks for both: the address and the password")
			t.Check("access list %q lets clients in by their address or by a password; headgate's policy %s asks for both, which is stricter: give those addresses a proxy or port of their own if they must come in without a password", r.text("name"), name)
		case any:
			t.say(r, "satisfy_any", importer.Same, "there is only one of both")
		default:
			r.ignore("satisfy_any")
		}
		if filter.Len() > 0 {
			p.Set("ip_filter", filter)
		}
		if auth.Len() > 0 {
			if r.flag("pass_auth") {
				auth.Set("forward_credentials", true)
				t.say(r, "pass_auth", importer.Same, "")
			}
			p.Set("basic_auth", auth)
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
			t.say(r, "username", importer.Close, "the API does not give passwords: set password_hash by headgate hash-password")
			t.Check("user %q of access list %q needs a password: set password_hash by headgate hash-password", name, list.text("name"))
			user.Set("password_hash", "")
		} else {
			hash, err := password.Argon2id(secret)
			if err != nil {
				t.say(r, "username", importer.Impossible, "the password cannot be used: %v", err)
				t.Check("user %q of access list %q was left out: %v", name, list.text("name"), err)
				continue
			}
			user.Set("password_hash", hash)
			t.say(r, "username", importer.Same, "the password was hashed with argon2id")
		}
		if !auth.Has("users") {
			auth.Set("users", []importer.Object{})
		}
		auth.Append("users", user)
	}
	return auth, nil
}

// clients makes the addresses of a list an ip_filter. Nginx takes the first rule that
// fits and denies the rest; headgate denies first, which is the same unless a network is
// denied and a part of it allowed.
func (t *translator) clients(list *record) importer.Object {
	var allow, deny []string
	everybody := false
	var denied []netip.Prefix
	for _, r := range t.tables["access_list_client"] {
		if r.number("access_list_id") != list.id {
			continue
		}
		address, directive := strings.TrimSpace(r.text("address")), r.text("directive")
		r.ignore("note")
		if address == "all" {
			everybody = everybody || directive == "allow"
			t.say(r, "address", importer.Same, "")
			continue
		}
		p, err := prefix(address)
		if err != nil {
			t.say(r, "address", importer.Impossible, "not an address: names are not looked up")
			t.Check("access list %q: %s is not an address and was left out", list.text("name"), address)
			continue
		}
		switch {
		case directive == "deny":
			deny, denied = append(deny, p.String()), append(denied, p)
			t.say(r, "address", importer.Same, "")
		default:
			allow = append(allow, p.String())
			verdict, note := importer.Same, ""
			for _, d := range denied {
				if d.Overlaps(p) {
					verdict, note = importer.Close, "deny wins: "+d.String()+" is denied before"
				}
			}
			t.say(r, "address", verdict, note)
		}
	}
	f := importer.NewObject()
	if len(allow) > 0 && !everybody {
		f.Set("allow", allow)
	}
	if len(deny) > 0 {
		f.Set("deny", deny)
	}
	if len(allow) == 0 && len(deny) > 0 && !everybody { // nginx denies the rest
		f.Set("deny", []string{"0.0.0.0/0", "::/0"})
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

// certificates takes certificates along: custom ones by their files; those of Let's
// Encrypt are ordered by headgate from now on, with the files in use until then.
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
			if dns, _ := meta["dns_challenge"].(bool); dns {
				provider, _ := meta["dns_provider"].(string)
				t.say(r, "provider", importer.Close, "it is ordered by DNS (%s): give acme.letsencrypt.dns the provider and its credentials", provider)
				t.Check("certificate %s is ordered by DNS at %q: set acme.letsencrypt.dns, which cannot be read from here", r.title(), provider)
			} else {
				t.say(r, "provider", importer.Same, "headgate orders it by acme.letsencrypt; the files are used until they end")
			}
			t.certificate(name, []string{filepath.Join(t.folder, "..", "letsencrypt", "live", name), filepath.Join("/etc/letsencrypt/live", name)}, r)
		default:
			t.wantTLS = true
			t.say(r, "provider", importer.Same, "by its files")
			t.certificate(name, []string{filepath.Join(t.folder, "custom_ssl", name), filepath.Join("/data/custom_ssl", name)}, r)
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

// certificate names the files of a certificate that can be found.
func (t *translator) certificate(name string, folders []string, r *record) {
	for _, folder := range folders {
		chain, key := filepath.Join(folder, "fullchain.pem"), filepath.Join(folder, "privkey.pem")
		if t.folder == "" {
			break
		}
		if _, err := t.files.Read(chain); err != nil {
			continue
		}
		t.Certificates.Set(name, importer.NewObject().Set("cert_file", clean(chain)).Set("key_file", clean(key)))
		return
	}
	t.Check("the files of certificate %s were not found (looked for %s): name them in certificates, or let acme order it", r.title(), strings.Join(folders, " and "))
}

func clean(name string) string {
	if absolute, err := filepath.Abs(name); err == nil {
		return absolute
	}
	return name
}
