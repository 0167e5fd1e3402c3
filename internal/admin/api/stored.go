package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/config"
	"headgate/internal/operator"
	"headgate/internal/plan"
	"headgate/internal/server/target"
	"headgate/internal/store"
)

// maxStored is how many certificates may be uploaded.
const maxStored = 10_000

// storedBody is a certificate in the state directory.
type storedBody struct {
	// Name is what the certificate is called: lower-case letters, digits and hyphens.
	Name string `json:"name"`
	// Names are the hosts that it is for.
	Names []string `json:"names"`
	// Issuer is who has signed it.
	Issuer string `json:"issuer"`
	// State is valid, expiring or expired.
	State string `json:"state"`
	// NotBefore is when its life begins.
	NotBefore time.Time `json:"not_before"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"not_after"`
	// DaysLeft is how many whole days of the life are left; below zero it has ended.
	DaysLeft int `json:"days_left"`
	// Chain is how many certificates there are with the intermediates.
	Chain int `json:"chain"`
	// Key is the kind of its key, such as ECDSA.
	Key string `json:"key"`
	// UsedBy are the certificates of the configuration that name it.
	UsedBy []string `json:"used_by"`
	// Notes are what was fixed at the upload, and what clients may reject.
	Notes []string `json:"notes,omitempty"`
	// Uploaded is when it was uploaded.
	Uploaded time.Time `json:"uploaded"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`

	at store.Revision
}

func (s storedBody) revision() store.Revision { return s.at }

// uploadInput is a certificate with its key.
type uploadInput struct {
	// Name is what the certificate is called: lower-case letters, digits and hyphens.
	Name string `json:"name,omitempty" max:"63"`
	// Certificate is its PEM text with the intermediates, in any order.
	Certificate string `json:"certificate" required:"true" max:"262144"`
	// Key is the PEM text of its private key. It may be part of the certificate's text.
	Key string `json:"key,omitempty" writeonly:"true" max:"262144"`
}

// selfSignedInput is a self-signed certificate to create.
type selfSignedInput struct {
	// Name is the name of the certificate: lower-case letters, digits and hyphens.
	Name string `json:"name" required:"true" max:"63"`
	// Hosts are the names and addresses that it is for.
	Hosts []string `json:"hosts" required:"true" max:"100"`
	// Days is how long it is good, from 1 to 3650; 0 is 365.
	Days int `json:"days,omitempty" max:"3650"`
}

// exportBody is a certificate with its key.
type exportBody struct {
	// Name is what the certificate is called.
	Name string `json:"name"`
	// Certificate is its PEM text with the intermediates.
	Certificate string `json:"certificate"`
	// Key is the PEM text of its private key.
	Key string `json:"key"`
}

// chosenBody is which certificate the clients of a host get on a port, and why.
type chosenBody struct {
	// Host is the host.
	Host string `json:"host"`
	// Port is the port.
	Port string `json:"port"`
	// Name is what the certificate is called, left out for the port's self-signed one.
	Name string `json:"name,omitempty"`
	// From is file, stored, acme or self-signed.
	From string `json:"from"`
	// Why is why it was chosen.
	Why string `json:"why"`
	// Names are the hosts that it is valid for.
	Names []string `json:"names"`
	// Issuer is the issuer in the certificate.
	Issuer string `json:"issuer,omitempty"`
	// State is valid, expiring, expired or missing.
	State string `json:"state"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"not_after,omitzero"`
	// DaysLeft is how many whole days of the life are left; below zero it has ended.
	DaysLeft int `json:"days_left"`
}

// storedRows are the rows of certificates in the state directory.
func (a *API) storedRows() []row {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	stored, one := "/stored_certificates", "/stored_certificates/{name}"
	return []row{
		{method: get, path: stored, access: viewer, area: areaCertificates, out: of[storedBody](), list: true, query: storedQuery, handle: a.stored,
			about: "Lists the certificates that were uploaded to the state directory, without their keys."},
		{method: post, path: "/certificates/upload", may: []int{409}, access: editor, area: areaCertificates, in: of[uploadInput](), out: of[storedBody](), status: http.StatusCreated, dry: true, handle: withBody(a.upload),
			about: "Stores a certificate with its key. The key is verified, the chain is sorted, and properties that clients may reject are reported. To use it, set stored in a certificate of the configuration."},
		{method: post, path: "/certificates/self_signed", may: []int{409}, access: editor, area: areaCertificates, in: of[selfSignedInput](), out: of[storedBody](), status: http.StatusCreated, dry: true, handle: withBody(a.selfSign),
			about: "Creates a self-signed certificate and stores it."},
		{method: get, path: one, access: viewer, area: areaCertificates, out: of[storedBody](), handle: a.storedOne,
			about: "Returns one certificate in the state directory, without its key."},
		{method: put, path: one, access: editor, area: areaCertificates, in: of[uploadInput](), out: of[storedBody](), match: true, dry: true, handle: withBody(a.replaceStored),
			about: "Replaces a certificate and its key. The new certificate is used at once."},
		{method: del, path: one, may: []int{409}, access: editor, area: areaCertificates, match: true, dry: true, handle: a.deleteStored,
			about: "Deletes a certificate that the configuration does not use."},
		{method: post, path: one + "/export", access: admin, area: areaCertificates, in: of[empty](), out: of[exportBody](), noDry: noDryAnswer, handle: withBody(a.export),
			about: "Returns a certificate with its private key: an uploaded one, or an ACME certificate selected by its name or a host."},
		{method: get, path: "/certificates/chosen", access: viewer, area: areaCertificates, out: of[chosenBody](), list: true, query: chosenQuery, handle: a.certificatesOf,
			about: "Shows which certificate clients get for a host, or for the virtual hosts of a proxy, on each port with TLS, and why."},
	}
}

var storedQuery = []parameter{
	{name: "limit", about: "The maximum number of entries, up to 1000.", kind: "integer"},
	{name: "cursor", about: "The position to continue at: `next` of the previous page."},
}

var chosenQuery = []parameter{
	{name: "host", about: "A host name or address."},
	{name: "proxy", about: "The name of a proxy."},
}

// users returns the names of the configuration's certificates by what they name as
// stored.
func (a *API) storedUsers() map[string][]string {
	all := map[string][]string{}
	now, err := a.running()
	if err != nil {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(now.Certificates)) {
		if s := now.Certificates[name].Stored; s != "" {
			all[s] = append(all[s], name)
		}
	}
	return all
}

// kept returns the store.
func (a *API) kept() (store.Store, error) {
	switch {
	case a.Control != nil:
		return a.Control.Store(), nil
	case a.Store != nil:
		return a.Store, nil
	}
	return nil, refuse("unavailable", "", "there is no state directory", "")
}

func (a *API) stored(c *call) (any, error) {
	kept, err := a.kept()
	if err != nil {
		return nil, err
	}
	names, err := storedNames(c.rq.Context(), kept)
	if err != nil {
		return nil, err
	}
	begin, next := 0, ""
	if after, err := base64.RawURLEncoding.DecodeString(c.text("cursor")); err != nil {
		return nil, badCursor()
	} else if begin, _ = slices.BinarySearch(names, string(after)+"\x00"); len(after) == 0 {
		begin = 0
	}
	end := min(begin+max(c.number("limit", defaultPage, maxPage), 1), len(names))
	if end < len(names) {
		next = base64.RawURLEncoding.EncodeToString([]byte(names[end-1]))
	}
	names = names[begin:end]
	users, items := a.storedUsers(), []storedBody{}
	for _, name := range names {
		e, err := kept.Get(c.rq.Context(), store.PrefixCertificate+name)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		items = append(items, showStored(e, users))
	}
	return page{Items: items, Next: next}, nil
}

// storedNames returns the names of what was uploaded, in order.
func storedNames(ctx context.Context, kept store.Store) (names []string, err error) {
	for after := ""; ; {
		metas, err := kept.List(ctx, store.PrefixCertificate, after, store.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, m := range metas {
			after = m.Key
			if name := strings.TrimPrefix(m.Key, store.PrefixCertificate); certs.CheckStoredName(name) {
				names = append(names, name)
			}
		}
		if len(metas) < store.MaxPage {
			return names, nil
		}
	}
}

// showStored describes a certificate. If it cannot be read, its notes have the reason.
func showStored(e store.Entry, users map[string][]string) storedBody {
	name := strings.TrimPrefix(e.Key, store.PrefixCertificate)
	b := storedBody{Name: name, Names: []string{}, UsedBy: notNil(users[name]), Uploaded: e.Modified, State: string(certs.Missing), at: e.Revision}
	if e.Revision > 0 {
		b.ETag = tag(e.Revision)
	}
	issued, err := acme.ParseIssued(name, e.Value)
	if err != nil {
		b.Notes = []string{"it cannot be read: " + err.Error()}
		return b
	}
	leaf, now := issued.Certificate.Leaf, time.Now()
	b.Names, b.Issuer, b.NotBefore, b.NotAfter = certs.Hosts(leaf), leaf.Issuer.String(), leaf.NotBefore, leaf.NotAfter
	b.State, b.DaysLeft = string(certs.StateAt(leaf.NotBefore, leaf.NotAfter, now)), certs.DaysLeft(leaf.NotAfter, now)
	b.Chain, b.Key = len(issued.Certificate.Certificate), leaf.PublicKeyAlgorithm.String()
	return b
}

func (a *API) upload(c *call, in *uploadInput) (any, error) {
	b, err := certs.NewBundle([]byte(in.Certificate), []byte(in.Key), time.Now())
	if err != nil {
		return nil, refuse("invalid", "/certificate", err.Error(), "give the certificate, its intermediates and its key in PEM form")
	}
	return a.keepBundle(c, in.Name, b, 0, "certificate.upload")
}

func (a *API) selfSign(c *call, in *selfSignedInput) (any, error) {
	if len(in.Hosts) == 0 {
		return nil, refuse("invalid", "/hosts", "a certificate is for at least one host", "name hosts or addresses")
	}
	for i, host := range in.Hosts {
		if _, err := netip.ParseAddr(host); err == nil {
			continue
		}
		name, wildcard := strings.CutPrefix(host, "*.")
		ascii, fault := target.Host(name)
		if fault != nil {
			return nil, refuse("invalid", fmt.Sprintf("/hosts/%d", i), fault.What, "write a name such as shop.example.com, or an address")
		}
		if in.Hosts[i] = ascii; wildcard {
			in.Hosts[i] = "*." + ascii
		}
	}
	if in.Days == 0 {
		in.Days = 365
	}
	if in.Days < 1 || in.Days > 3650 {
		return nil, refuse("invalid", "/days", "a certificate is valid for 1 to 3650 days", "")
	}
	b, err := certs.MakeSelfSigned(in.Hosts, time.Duration(in.Days)*24*time.Hour, time.Now())
	if err != nil {
		return nil, refuse("invalid", "/hosts", err.Error(), "")
	}
	return a.keepBundle(c, in.Name, b, 0, "certificate.self_signed")
}

func (a *API) replaceStored(c *call, in *uploadInput) (any, error) {
	was, err := a.storedAt(c)
	if err != nil {
		return nil, err
	}
	if in.Name != "" && in.Name != c.name() {
		return nil, refuse("invalid", "/name", "a stored certificate cannot be renamed", "upload it under the other name")
	}
	b, err := certs.NewBundle([]byte(in.Certificate), []byte(in.Key), time.Now())
	if err != nil {
		return nil, refuse("invalid", "/certificate", err.Error(), "give the certificate, its intermediates and its key in PEM form")
	}
	return a.keepBundle(c, c.name(), b, was.Revision, "certificate.replace")
}

// keepBundle keeps a certificate under a name whose entry has a revision, 0 for none.
func (a *API) keepBundle(c *call, name string, b *certs.Bundle, was store.Revision, action string) (any, error) {
	kept, err := a.kept()
	if err != nil {
		return nil, err
	}
	if !certs.CheckStoredName(name) {
		return nil, refuse("invalid", "/name", "use 1 to 63 lower-case letters, digits and hyphens", "")
	}
	ctx, key := c.rq.Context(), store.PrefixCertificate+name
	if was == 0 {
		names, err := storedNames(ctx, kept)
		switch {
		case err != nil:
			return nil, err
		case slices.Contains(names, name):
			return nil, refuse(operator.CodeExists, "/name", "a certificate is stored under this name", "replace it by PUT, or take another name")
		case len(names) >= maxStored:
			return nil, refuse(operator.CodeOverloaded, "", fmt.Sprintf("%d certificates are stored already", maxStored), "remove some")
		}
	}
	entry := store.Entry{Key: key, Value: b.PEM(), Modified: time.Now()}
	shown := showStored(entry, a.storedUsers())
	if !c.dryRun {
		change := store.Change{
			If: []store.Condition{{Key: key, Revision: was}}, Put: []store.Entry{{Key: key, Value: entry.Value}},
			Append: []store.Record{c.who.Audit(action, name, "", nil, shown)}, Who: c.who.Name, Why: action,
		}
		if entry.Revision, err = kept.Commit(ctx, change); err != nil {
			return nil, staleStored(err)
		}
		shown = showStored(entry, a.storedUsers())
	}
	shown.Notes = append(shown.Notes, b.Notes...)
	return shown, nil
}

// staleStored returns the response for a certificate that another request has changed.
func staleStored(err error) error {
	var conflict *store.Conflict
	if errors.As(err, &conflict) {
		return refuse(operator.CodeStale, "", "the certificate was changed since you read it", "read it again")
	}
	return err
}

// storedAt returns the certificate of the path, which has the revision that If-Match
// names, if the row wants one.
func (a *API) storedAt(c *call) (store.Entry, error) {
	kept, err := a.kept()
	if err != nil {
		return store.Entry{}, err
	}
	missing := refuse(operator.CodeNotFound, "", "no certificate is stored under this name", "the list of /stored_certificates names all")
	if !certs.CheckStoredName(c.name()) {
		return store.Entry{}, missing
	}
	e, err := kept.Get(c.rq.Context(), store.PrefixCertificate+c.name())
	switch {
	case errors.Is(err, store.ErrNotFound) && c.row.match && c.have != operator.Any:
		return e, refuse(operator.CodeStale, "", "no certificate is stored under this name", "read the list again")
	case errors.Is(err, store.ErrNotFound):
		return e, missing
	case err != nil:
		return e, err
	case c.row.match && c.have != operator.Any && c.have != e.Revision:
		return e, refuse(operator.CodeStale, "", "the certificate was changed since you read it", "read it again")
	}
	return e, nil
}

func (a *API) storedOne(c *call) (any, error) {
	e, err := a.storedAt(c)
	if err != nil {
		return nil, err
	}
	return showStored(e, a.storedUsers()), nil
}

func (a *API) deleteStored(c *call) (any, error) {
	e, err := a.storedAt(c)
	if err != nil {
		return nil, err
	}
	if used := a.storedUsers()[c.name()]; len(used) > 0 {
		return nil, refuse("in_use", "", "the configuration names it: certificates "+strings.Join(used, ", "), "remove those first")
	}
	if c.dryRun {
		return nil, nil
	}
	kept, err := a.kept()
	if err != nil {
		return nil, err
	}
	_, err = kept.Commit(c.rq.Context(), store.Change{
		If: []store.Condition{{Key: e.Key, Revision: e.Revision}}, Delete: []string{e.Key},
		Append: []store.Record{c.who.Audit("certificate.delete", c.name(), "", showStored(e, nil), nil)}, Who: c.who.Name, Why: "certificate.delete",
	})
	return nil, staleStored(err)
}

func (a *API) export(c *call, _ *empty) (any, error) {
	kept, err := a.kept()
	if err != nil {
		return nil, err
	}
	name := c.name()
	if a.Control != nil && !certs.CheckStoredName(name) {
		if r := a.Control.OrderOf(name); r != nil {
			name = r.Name
		}
	}
	missing := refuse(operator.CodeNotFound, "", "no certificate is stored under this name", "the lists of /stored_certificates and /orders name all")
	if store.CheckKey(store.PrefixCertificate+name) != nil || strings.Contains(name, "/") {
		return nil, missing
	}
	e, err := kept.Get(c.rq.Context(), store.PrefixCertificate+name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	chain, key := certs.Split(e.Value)
	if err := a.Operators.Note(c.rq.Context(), c.who, "certificate.export", name, "with its key"); err != nil {
		return nil, err
	}
	return exportBody{Name: name, Certificate: string(chain), Key: string(key)}, nil
}

// maxChosen limits the hosts in a response.
const maxChosen = 1000

func (a *API) certificatesOf(c *call) (any, error) {
	now, err := a.running()
	if err != nil {
		return nil, err
	}
	var hosts []string
	switch host, name := c.text("host"), c.text("proxy"); {
	case (host == "") == (name == ""):
		return nil, refuseParameter("invalid", "host", "either a host or a proxy is wanted", "")
	case host != "":
		hosts = []string{host}
	case now.Proxies[name] == nil:
		return nil, refuseParameter(operator.CodeNotFound, "proxy", "there is no such proxy", "")
	default:
		hosts = config.ACMEHosts(now.Proxies[name])
	}
	items := []chosenBody{}
	for _, host := range hosts[:min(len(hosts), maxChosen)] {
		for _, p := range a.Control.Plan().Chosen(host) {
			items = append(items, showChosen(host, &p))
		}
	}
	return page{Items: items}, nil
}

func showChosen(host string, p *plan.Chosen) chosenBody {
	b := chosenBody{Host: host, Port: p.Port, Name: p.Name, From: p.From, Why: p.Why, Names: notNil(p.Names), Issuer: p.Issuer, State: p.State, NotAfter: p.NotAfter}
	if !p.NotAfter.IsZero() {
		b.DaysLeft = certs.DaysLeft(p.NotAfter, time.Now())
	}
	return b
}
