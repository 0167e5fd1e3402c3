package api

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/operator"
	"headgate/internal/schema"
)

// adminKind is the kind of the admin listener's settings.
const adminKind = "admin"

// withinRights rejects changes that would give an operator who is not an admin more rights:
// to decide who may sign in, or to read a secret that only headgate has.
func (e *edit) withinRights(now, after *config.Config) error {
	if !sameAdmin(now, after) {
		return adminOnly(pointerOf(adminKind, e.path()))
	}
	if path := movedCredential(now, after); path != "" {
		return refuse(operator.CodeForbidden, pointerOf(path, e.path()),
			"the credential would be sent to another provider or endpoint than it was entered for", "enter the credential again, or ask an admin")
	}
	return nil
}

// grantsNothing rejects that an operator who may not grant access does so by a change of the
// configuration.
func (c *call) grantsNothing(now, after *config.Config, at string) error {
	if c.mayGrant() {
		return nil
	}
	if g := config.NewGrant(now, after); g != nil {
		return c.noAccess(g.Detail, pointerOf(g.Path, at))
	}
	return nil
}

// noAccess is the refusal of what decides who enters applications: it says what the operator
// lacks, and who can do it. Grant is what a change of the configuration would grant, "" for
// other operations; at is where.
func (c *call) noAccess(grant, at string) error {
	what := "to manage access to applications"
	if grant != "" {
		what = "to grant access to applications (" + grant + ")"
	}
	has := "you have the role " + string(c.who.Role)
	if len(c.who.Scopes) > 0 {
		has = "this token has the role " + string(c.who.Role) + " and the scopes " + strings.Join(c.who.Scopes, ", ")
	}
	p := refuse("access_required", at, what+", you need the role admin, or a token with the role editor and the scope access; "+has,
		`ask an admin to do it, or to create such a token: "headgate token create NAME --role editor --scope access"`)
	p.Grant = grant
	return p
}

func adminOnly(at string) error {
	return refuse(operator.CodeForbidden, at, "only an admin may change the settings of the admin listener, which control who may sign in", "ask an admin")
}

// sameAdmin reports whether two configurations have the same settings for the admin
// listener.
func sameAdmin(now, after *config.Config) bool {
	a, _ := now.Canonical(adminKind, "", false)
	b, _ := after.Canonical(adminKind, "", false)
	return bytes.Equal(a, b)
}

// endpointCredential is the credential with the address of a DNS provider. It is not a
// secret.
const endpointCredential = "endpoint"

// movedCredential returns the path of a credential of a DNS provider or a notice that would
// be sent to another destination than now, "" for none.
func movedCredential(now, after *config.Config) string {
	type place struct{ provider, endpoint string }
	sent := map[string][]place{}
	for _, n := range now.Notices {
		for secret, to := range n.Credentials() {
			sent[secret] = append(sent[secret], place{n.Preset(), to})
		}
	}
	for _, a := range now.ACME {
		if a.DNS == nil {
			continue
		}
		for key, value := range a.DNS.Credentials {
			if key != endpointCredential {
				sent[value] = append(sent[value], place{a.DNS.Provider, a.DNS.Credentials[endpointCredential]})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Notices)) {
		n := after.Notices[name]
		for secret, to := range n.Credentials() {
			if was, known := sent[secret]; known && !slices.Contains(was, place{n.Preset(), to}) {
				return schema.JoinPath("notices", name) + "." + n.Preset()
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.ACME)) {
		d := after.ACME[name].DNS
		if d == nil {
			continue
		}
		to := place{d.Provider, d.Credentials[endpointCredential]}
		for _, key := range slices.Sorted(maps.Keys(d.Credentials)) {
			was, known := sent[d.Credentials[key]]
			if key != endpointCredential && known && !slices.Contains(was, to) {
				return schema.JoinPath(schema.JoinPath("acme", name)+".dns.credentials", key)
			}
		}
	}
	return ""
}
